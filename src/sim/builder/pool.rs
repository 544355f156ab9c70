//! The names of built worlds.

use crate::api::GroupResource;

/// Workspaces with bindings, in the order in which they are taken.
pub(super) const WORKSPACES: [&str; 3] = ["meadow", "brook", "orchard"];
/// Logical clusters with exports. One binds as well, for bindings that name no path.
pub(super) const PROVIDERS: [&str; 3] = ["farm", "meadow", "dairy"];
/// Names of bindings: few, so that they are used again.
pub(super) const BINDINGS: [&str; 5] = ["alder", "birch", "cedar", "hazel", "rowan"];
/// The name of a binding that was there once.
pub(super) const GONE: &str = "yew";
pub(super) const EXPORTS: [&str; 3] = ["birds", "beasts", "barn"];
/// An export that nobody has made yet.
pub(super) const UNKNOWN_EXPORT: &str = "swans";
const PLURALS: [&str; 8] = ["geese", "ducks", "hens", "goats", "sheep", "cows", "bees", "pigs"];

/// A resource with all its names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    pub group: String,
    pub plural: String,
    /// Empty, as `list_kind` and the list of short names may be: then a server fills it in.
    pub singular: String,
    pub short: Vec<String>,
    pub kind: String,
    pub list_kind: String,
}

impl Resource {
    fn new(group: &str, plural: &str, singular: &str, short: &[&str], kind: &str, list_kind: &str) -> Self {
        Self {
            group: group.into(),
            plural: plural.into(),
            singular: singular.into(),
            short: short.iter().map(|name| (*name).to_owned()).collect(),
            kind: kind.into(),
            list_kind: list_kind.into(),
        }
    }

    /// Resources that get in each other's way: each sort of name is shared by some two of them.
    pub fn clashing() -> Vec<Self> {
        vec![
            Self::new("farm.example", "geese", "goose", &["gs"], "Goose", "GooseList"),
            // In the core group, and without the names that may be missing.
            Self::new("", "eggs", "", &[], "Egg", ""),
            // Its singular is that of `geese`.
            Self::new("farm.example", "ganders", "goose", &[], "Gander", "GanderList"),
            // The names of `geese` in another group, which is no conflict.
            Self::new("pond.example", "geese", "goose", &["gs"], "Goose", "GooseList"),
            // One of its short names is that of `geese`.
            Self::new("farm.example", "goslings", "gosling", &["go", "gs"], "Gosling", "GoslingList"),
            // Its kind is that of `geese`.
            Self::new("farm.example", "flocks", "flock", &[], "Goose", "FlockList"),
            Self::new("dairy.example", "cheeses", "cheese", &["ch"], "Cheese", "CheeseList"),
        ]
    }

    /// A resource of a group of its own, that of the export with this number.
    pub fn lonely(export: usize, number: usize) -> Self {
        let name = PLURALS.get(number % PLURALS.len()).copied().unwrap_or_default();
        let round = number / PLURALS.len();
        let name = if round == 0 { name.to_owned() } else { format!("{name}{round}") };
        let kind: String = name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
        let group = format!("flock-{export}.example");
        Self::new(&group, &name, &format!("one-{name}"), &[], &kind, &format!("{kind}List"))
    }

    pub fn key(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// The name that a server gives the single one.
    pub fn full_singular(&self) -> String {
        if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() }
    }

    pub fn full_list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }

    /// True if no workspace can have both under all their names.
    pub fn clashes(&self, other: &Self) -> bool {
        let names = |it: &Self| -> Vec<String> {
            it.short.iter().cloned().chain([it.plural.clone(), it.full_singular()]).collect()
        };
        let kinds = |it: &Self| [it.kind.clone(), it.full_list_kind()];
        let share = |one: &[String], other: &[String]| one.iter().any(|name| other.contains(name));
        self.group == other.group && (share(&names(self), &names(other)) || share(&kinds(self), &kinds(other)))
    }
}

/// The path of a logical cluster.
pub(super) fn path_of(cluster: &str) -> String {
    format!("root:{cluster}")
}
