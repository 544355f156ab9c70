//! The small alphabet of generated worlds. It is small on purpose: two things that are drawn
//! independently of each other are to meet often.

use crate::api::{GroupResource, ResourceNames, Text};

/// Logical clusters with bindings.
pub(super) const CONSUMERS: [&str; 2] = ["meadow", "brook"];
/// Logical clusters with exports. One of them binds as well, for bindings without a path.
pub(super) const PROVIDERS: [&str; 3] = ["farm", "meadow", "dairy"];
/// Names of bindings.
pub(super) const BINDINGS: [&str; 3] = ["alder", "birch", "cedar"];
/// Names of bindings that stand in locks: those above, and one that nobody has.
pub(super) const HOLDERS: [&str; 4] = ["alder", "birch", "cedar", "yew"];
/// Names of exports.
pub(super) const EXPORTS: [&str; 2] = ["birds", "beasts"];
/// Identities of exports.
pub(super) const IDENTITIES: [&str; 2] = ["id-one", "id-two"];

/// A resource with all its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    kind: &'static str,
    list_kind: &'static str,
}

/// Resources that get in each other's way: each sort of name is shared by some two of them.
pub(super) const RESOURCES: [Resource; 7] = [
    Resource {
        group: "farm.example",
        plural: "geese",
        singular: "goose",
        short: &["gs"],
        kind: "Goose",
        list_kind: "GooseList",
    },
    // In the core group, and without the names that may be missing.
    Resource { group: "", plural: "eggs", singular: "", short: &[], kind: "Egg", list_kind: "" },
    // Its singular is that of `geese`.
    Resource {
        group: "farm.example",
        plural: "ganders",
        singular: "goose",
        short: &[],
        kind: "Gander",
        list_kind: "GanderList",
    },
    // The names of `geese` in another group, which is no conflict.
    Resource {
        group: "pond.example",
        plural: "geese",
        singular: "goose",
        short: &["gs"],
        kind: "Goose",
        list_kind: "GooseList",
    },
    // One of its short names is that of `geese`.
    Resource {
        group: "farm.example",
        plural: "goslings",
        singular: "gosling",
        short: &["go", "gs"],
        kind: "Gosling",
        list_kind: "GoslingList",
    },
    // Its kind is that of `geese`.
    Resource { group: "farm.example", plural: "flocks", singular: "flock", short: &[], kind: "Goose", list_kind: "" },
    // Its list kind is that of `geese`.
    Resource {
        group: "farm.example",
        plural: "gaggles",
        singular: "",
        short: &[],
        kind: "Gaggle",
        list_kind: "GooseList",
    },
];

impl Resource {
    pub(super) fn key(self) -> GroupResource {
        GroupResource::new(self.group, self.plural)
    }

    pub(super) fn names(self) -> ResourceNames {
        ResourceNames {
            plural: self.plural.into(),
            singular: self.singular.into(),
            short_names: self.short.iter().map(|name| Text::from(*name)).collect(),
            kind: self.kind.into(),
            list_kind: self.list_kind.into(),
        }
    }
}

/// Which schema: a provider's, of a resource, in one of two revisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaId {
    pub(super) cluster: &'static str,
    pub(super) resource: Resource,
    pub(super) revision: u8,
}

impl SchemaId {
    pub(super) fn name(self) -> String {
        format!("v{}.{}", self.revision, self.resource.key().crd_name())
    }

    /// The uid of the schema, which is the name of its bound CRD; another one for each time that it
    /// is created anew.
    pub(super) fn uid(self, generation: u8) -> String {
        format!("{}-{}-{generation}", self.cluster, self.name())
    }
}

/// The uid of a binding; another one for each time that it is created anew.
pub(super) fn binding_uid(cluster: &str, name: &str, generation: u8) -> String {
    format!("{cluster}-{name}-{generation}")
}

/// The path of a logical cluster.
pub(super) fn path_of(cluster: &str) -> String {
    format!("root:{cluster}")
}
