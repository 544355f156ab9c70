//! The names by which things are found: clusters and their paths, bindings, resources.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Text;

/// A name that a person typed and that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not the name of a logical cluster.
    #[error(
        "`{0}` is no cluster name: expected lower-case letters, digits and `-`, two to 63 characters that begin and \
         end with a letter or digit, or a name that starts with `system:`"
    )]
    Cluster(String),
    /// Not a path of logical clusters.
    #[error(
        "`{0}` is no cluster path: expected `*`, or segments like `root:org:team`, each of lower-case letters, digits \
         and `-` that begins and ends with a letter or digit"
    )]
    Path(String),
    /// Not the key of a binding.
    #[error("`{0}` is no binding: expected `CLUSTER/NAME` or `CLUSTER|NAME`")]
    Binding(String),
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Text);

        impl $name {
            /// The text as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text as it stands on the wire, shared.
            pub fn as_text(&self) -> &Text {
                &self.0
            }

            /// True for the empty text, which stands for "none".
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<Text> for $name {
            fn from(text: Text) -> Self {
                Self(text)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_newtype! {
    /// The name (id) of a logical cluster, such as `2x5bq1zk8m` or `root` (SPEC 1).
    ///
    /// Objects are read with whatever name they have; [`ClusterName::parse`] is for what a
    /// person types.
    ClusterName
}

text_newtype! {
    /// A path of logical clusters, such as `root:org:team` (SPEC 1).
    ClusterPath
}

text_newtype! {
    /// The hash by which an APIExport's API is known, whoever binds it.
    IdentityHash
}

impl ClusterName {
    /// The cluster that holds the bound CRDs of a shard.
    pub const BOUND_CRDS: &str = "system:bound-crds";

    /// Reads what a person typed.
    ///
    /// # Errors
    /// [`NameError::Cluster`] if it cannot be the name of a logical cluster.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.starts_with("system:") || (text.len() > 1 && is_segment(text)) {
            Ok(text.into())
        } else {
            Err(NameError::Cluster(text.into()))
        }
    }

    /// The path that consists of this name only.
    pub fn path(&self) -> ClusterPath {
        ClusterPath(self.0.clone())
    }
}

impl ClusterPath {
    /// Reads what a person typed.
    ///
    /// # Errors
    /// [`NameError::Path`] if it cannot be a path.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text == "*" || text.split(':').all(is_segment) { Ok(text.into()) } else { Err(NameError::Path(text.into())) }
    }

    /// True for `*`, which stands for all clusters.
    pub fn is_wildcard(&self) -> bool {
        self.0 == "*"
    }

    /// The path of something named `name` below this one; just the name below the empty path.
    pub fn join(&self, name: &str) -> ClusterPath {
        if self.is_empty() { name.into() } else { Self(Text::from(format_args!("{self}:{name}"))) }
    }

    /// The path without its last segment, unless there is none or this is a `system:` path,
    /// which is one unit.
    pub fn parent(&self) -> Option<ClusterPath> {
        if self.0.starts_with("system:") {
            return None;
        }
        self.0.rsplit_once(':').map(|(parent, _)| parent.into())
    }

    /// The last segment; all of a `system:` path.
    pub fn base(&self) -> &str {
        if self.0.starts_with("system:") {
            return &self.0;
        }
        self.0.rsplit_once(':').map_or(&*self.0, |(_, base)| base)
    }
}

fn is_segment(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Which object of a kind: its logical cluster and its name. Printed as `cluster|name`.
///
/// The order is that of the printed texts, which is how the queue and the look-ups of
/// SPEC 2 sort ("by key").
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BindingKey {
    /// The logical cluster; empty for an object that does not say.
    pub cluster: ClusterName,
    /// The object's name.
    pub name: Text,
}

impl BindingKey {
    /// The key of the binding `name` in `cluster`.
    pub fn new(cluster: impl Into<ClusterName>, name: impl Into<Text>) -> Self {
        Self { cluster: cluster.into(), name: name.into() }
    }
}

impl Ord for BindingKey {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp_joined((&self.cluster.0, b'|', &self.name), (&other.cluster.0, b'|', &other.name))
    }
}

impl PartialOrd for BindingKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for BindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cluster.is_empty() {
            return self.name.fmt(f);
        }
        write!(f, "{}|{}", self.cluster, self.name)
    }
}

/// Reads `cluster|name`, `cluster/name`, or just `name` for the empty cluster.
impl FromStr for BindingKey {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (cluster, name) = text.split_once(['|', '/']).unwrap_or(("", text));
        if name.is_empty() || name.contains(['|', '/']) {
            return Err(NameError::Binding(text.into()));
        }
        Ok(Self::new(cluster, name))
    }
}

/// Compares two texts that are joined from two parts each, without joining them. A part that
/// is empty stands without the separator.
pub(crate) fn cmp_joined(left: (&str, u8, &str), right: (&str, u8, &str)) -> Ordering {
    let common = left.0.len().min(right.0.len());
    match left.0.as_bytes().get(..common).cmp(&right.0.as_bytes().get(..common)) {
        Ordering::Equal => {}
        different => return different,
    }
    // One begins with all of the other, whose separator comes next.
    let next = |(head, separator, _): (&str, u8, &str)| head.as_bytes().get(common).copied().unwrap_or(separator);
    if common > 0 && next(left) != next(right) {
        return next(left).cmp(&next(right));
    }
    fn bytes<'a>((head, separator, tail): (&'a str, u8, &'a str)) -> impl Iterator<Item = u8> + 'a {
        head.bytes().chain((!head.is_empty()).then_some(separator)).chain(tail.bytes())
    }
    if left.0 == right.0 { left.2.cmp(right.2) } else { bytes(left).cmp(bytes(right)) }
}

/// A resource and its group, printed `resource.group`, or just `resource` in the core group.
///
/// That text is also the key of a lock (SPEC 5). The order is by group, then resource.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct GroupResource {
    text: Text,
    resource: u32,
}

impl GroupResource {
    /// The resource (plural) `resource` of `group`; the core group is empty.
    pub fn new(group: &str, resource: &str) -> Self {
        let text = if group.is_empty() { resource.into() } else { Text::from(format_args!("{resource}.{group}")) };
        Self { text, resource: u32::try_from(resource.len()).unwrap_or(u32::MAX) }
    }

    /// `resource.group`, or just `resource` in the core group.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same, shared.
    pub fn as_text(&self) -> &Text {
        &self.text
    }

    /// The same resource, with a text that is the same.
    pub(crate) fn with_text(&self, text: Text) -> Self {
        Self { text, resource: self.resource }
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.text.get(self.resource as usize + 1..).unwrap_or_default()
    }

    /// The resource's plural name.
    pub fn resource(&self) -> &str {
        self.text.get(..self.resource as usize).unwrap_or_default()
    }

    /// The name that a CustomResourceDefinition of this resource has in a workspace.
    pub fn crd_name(&self) -> Text {
        if self.group().is_empty() { Text::from(format_args!("{}.core", self.resource())) } else { self.text.clone() }
    }
}

/// Reads a lock's key: what stands before the first dot is the resource. The text stays as it is.
impl From<Text> for GroupResource {
    fn from(text: Text) -> Self {
        let resource = text.find('.').unwrap_or(text.len());
        Self { text, resource: u32::try_from(resource).unwrap_or(u32::MAX) }
    }
}

/// Reads a lock's key, see above.
impl From<&str> for GroupResource {
    fn from(text: &str) -> Self {
        Text::from(text).into()
    }
}

impl Ord for GroupResource {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        self.group().cmp(other.group()).then_with(|| self.resource().cmp(other.resource()))
    }
}

impl PartialOrd for GroupResource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Debug for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for GroupResource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GroupResource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(&*Text::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_join_and_part() {
        let join = |path: &str, name: &str| ClusterPath::from(path).join(name).to_string();
        assert_eq!(join("root:org", "ws"), "root:org:ws");
        assert_eq!(join("", "ws"), "ws");
        assert_eq!(ClusterPath::from("root:org:ws").parent(), Some("root:org".into()));
        assert_eq!(ClusterPath::from("root").parent(), None);
        assert_eq!(ClusterPath::from("system:bound-crds").parent(), None);
        assert_eq!(ClusterPath::from("system:bound-crds").base(), "system:bound-crds");
        assert_eq!(ClusterPath::from("root:org").base(), "org");
    }

    #[test]
    fn what_a_person_types_is_checked() {
        for good in ["*", "root", "root:org:a-1", "a"] {
            assert!(ClusterPath::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "root:", ":a", "Root", "a_b", "-a", "a-", "root:*", &"a".repeat(64)] {
            assert!(ClusterPath::parse(bad).is_err(), "{bad}");
        }
        for good in ["root", "a1", "system:shard", "2x-9"] {
            assert!(ClusterName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a", "root:org", "A1"] {
            assert!(ClusterName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_read_printed_and_sorted_as_text() {
        for (typed, printed) in [("c|n", "c|n"), ("root:a/n", "root:a|n"), ("n", "n"), ("|n", "n")] {
            assert_eq!(typed.parse::<BindingKey>().map(|key| key.to_string()), Ok(printed.into()));
        }
        for bad in ["", "c|", "c/", "a/b/c"] {
            assert_eq!(bad.parse::<BindingKey>(), Err(NameError::Binding(bad.into())));
        }
        let mut keys: Vec<BindingKey> =
            ["a|x", "a-b|x", "a|y", "ab|x", "z"].into_iter().filter_map(|key| key.parse().ok()).collect();
        keys.sort();
        let mut texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(texts.first().map(String::as_str), Some("a-b|x"), "`-` stands before `|`");
        let sorted = texts.clone();
        texts.sort();
        assert_eq!(texts, sorted);
    }

    #[test]
    fn group_resources_print_as_the_keys_of_locks() {
        let of = |group, resource| GroupResource::new(group, resource);
        assert_eq!(of("g.io", "foos").to_string(), "foos.g.io");
        assert_eq!(of("", "pods").to_string(), "pods");
        assert_eq!(GroupResource::from("foos.g.io"), of("g.io", "foos"));
        assert_eq!((of("g.io", "foos").group(), of("", "pods").group()), ("g.io", ""));
        assert_eq!(of("", "pods").crd_name(), "pods.core");
        assert_eq!(of("g.io", "foos").crd_name(), "foos.g.io");
        assert!(of("a", "z") < of("b", "a"), "by group first");
        assert_eq!(GroupResource::from("foos.").as_str(), "foos.", "not renamed");
    }
}
