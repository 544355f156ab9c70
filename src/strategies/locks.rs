//! Lock annotations: readable, unreadable, `null`, empty and missing ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::exports::resource;
use super::pools::{HOLDERS, Resource, binding_uid};
use super::world::PRESENT;

/// One annotation, before it is known in which cluster and among which bindings it stands.
#[derive(Clone, Debug)]
pub(super) enum AnnotationSpec {
    Missing,
    Locks {
        /// Locks of the cluster's bindings on what they list, written as that says.
        of_bindings: Written,
        more: Vec<Entry>,
        /// Not as this controller would write it.
        spaced: bool,
    },
    Text(&'static str),
}

/// How the locks of bindings are written, if they are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Not,
    WithoutUid,
    WithUid,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `None`: of a resource that nobody offers.
    resource: Option<Resource>,
    lock: LockSpec,
}

/// One entry. Times are seconds from [`PRESENT`].
#[derive(Clone, Debug)]
enum LockSpec {
    Null,
    Nobody,
    Binding {
        name: &'static str,
        /// `None`: as others write it.
        generation: Option<u8>,
        expiry: Option<i64>,
    },
    Crd {
        expiry: Option<i64>,
        name: &'static str,
    },
}

const UNREADABLE: [&str; 6] = [
    "no json",
    "[]",
    "{\"geese.farm.example\":{\"n\":7}}",
    "{\"eggs\":{\"c\":\"true\"}}",
    "{\"eggs\":{\"c\":true,\"e\":\"soon\"}}",
    "{\"eggs\":{\"n\":\"alder\",\"u\":1}}",
];

impl LockSpec {
    fn to_text(&self, cluster: &str) -> String {
        let after = |seconds: &i64| {
            let time = PRESENT.checked_add(SignedDuration::from_secs(*seconds)).unwrap_or(Timestamp::MAX);
            format!("\"e\":\"{time}\"")
        };
        let fields: Vec<String> = match self {
            Self::Null => return "null".into(),
            Self::Nobody => Vec::new(),
            Self::Binding { name, generation, expiry } => {
                let uid = generation.map(|generation| format!("\"u\":\"{}\"", binding_uid(cluster, name, generation)));
                [format!("\"n\":\"{name}\"")].into_iter().chain(expiry.iter().map(after)).chain(uid).collect()
            }
            Self::Crd { expiry, name } => {
                let name = (!name.is_empty()).then(|| format!("\"n\":\"{name}\""));
                name.into_iter().chain(["\"c\":true".into()]).chain(expiry.iter().map(after)).collect()
            }
        };
        format!("{{{}}}", fields.join(","))
    }
}

impl AnnotationSpec {
    /// One that can be read, in whatever layout.
    pub(super) fn make_sound(&mut self) {
        if matches!(self, Self::Missing | Self::Text(_)) {
            *self = Self::Text("{}");
        }
    }

    /// The text; `bound`: the bindings of the cluster, each with its uid and the keys that it lists.
    pub(super) fn to_text(&self, cluster: &str, bound: &[(String, String, Vec<String>)]) -> Option<String> {
        let (of_bindings, more, spaced) = match self {
            Self::Missing => return None,
            Self::Text(text) => return Some((*text).into()),
            Self::Locks { of_bindings, more, spaced } => (of_bindings, more, *spaced),
        };
        let mut entries = std::collections::BTreeMap::new();
        for (name, uid, keys) in bound {
            let uid = match of_bindings {
                Written::Not => continue,
                Written::WithUid if !uid.is_empty() => format!(",\"u\":\"{uid}\""),
                _ => String::new(),
            };
            for key in keys {
                entries.entry(key.clone()).or_insert_with(|| format!("{{\"n\":\"{name}\"{uid}}}"));
            }
        }
        for Entry { resource, lock } in more {
            let key = resource.map_or_else(|| "barns.hill.example".into(), |resource| resource.key().to_string());
            entries.insert(key, lock.to_text(cluster));
        }
        let colon = if spaced { "\": " } else { "\":" };
        let entries: Vec<String> = entries.into_iter().map(|(key, lock)| format!("\"{key}{colon}{lock}")).collect();
        Some(format!("{{{}}}", entries.join(",")))
    }
}

fn lock_spec() -> BoxedStrategy<LockSpec> {
    // Over, over but for the grace of D24, at the very end of it, and not over.
    let expiry =
        || prop_oneof![1 => Just(None), 4 => select(&[-3600, -7200, -100, -76, -75, -74, -1, 0, 600]).prop_map(Some)];
    let generation = || prop_oneof![2 => Just(None), 3 => (0u8..3).prop_map(Some)];
    prop_oneof![
        6 => (select(&HOLDERS), generation(), prop::option::weighted(0.1, Just(600)))
            .prop_map(|(name, generation, expiry)| LockSpec::Binding { name, generation, expiry }),
        4 => (expiry(), prop_oneof![9 => Just(""), 1 => Just("alder")])
            .prop_map(|(expiry, name)| LockSpec::Crd { expiry, name }),
        1 => Just(LockSpec::Nobody),
        1 => Just(LockSpec::Null),
    ]
    .boxed()
}

/// One annotation. `likely`: how often it holds the locks that the bindings should have.
pub(super) fn annotation_spec(likely: u32) -> BoxedStrategy<AnnotationSpec> {
    let resource = prop_oneof![9 => resource().prop_map(Some), 1 => Just(None)];
    let entry = (resource, lock_spec()).prop_map(|(resource, lock)| Entry { resource, lock });
    let of_bindings = prop_oneof![
        2 => Just(Written::Not),
        1 + likely => Just(Written::WithUid),
        1 + likely => Just(Written::WithoutUid),
    ];
    prop_oneof![
        3 => Just(AnnotationSpec::Missing),
        1 => Just(AnnotationSpec::Text("{}")),
        1 => select(&["null", "", " { } "]).prop_map(AnnotationSpec::Text),
        14 + 4 * likely => (of_bindings, vec(entry, 0..3), prop::bool::weighted(0.1))
            .prop_map(|(of_bindings, more, spaced)| AnnotationSpec::Locks { of_bindings, more, spaced }),
        1 => select(&UNREADABLE).prop_map(AnnotationSpec::Text),
    ]
    .boxed()
}

/// The text of a lock annotation: locks of bindings that exist and of one that does not, with the
/// uid of today's binding, of its predecessor or without; locks of CRDs that are over, nearly over,
/// and for ever; entries that hold nothing; and what is no map of locks at all.
pub fn lock_annotation() -> impl Strategy<Value = Option<String>> {
    annotation_spec(0).prop_map(|spec| spec.to_text("meadow", &[]))
}
