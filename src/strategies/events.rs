//! What happens to worlds: changes, and answers to requests.

use std::fmt;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

use super::binding;
use super::bindings::{BindingSpec, binding_spec};
use super::exports::{ExportSpec, OwnCrdSpec, bound_crd, conversion, crd, export, schema};
use super::touch::{Touch, next_uid, touch};
use super::world::{World, WorldSpec, logical_cluster, world_spec};
use crate::api::{BindingKey, Kind, Object, Text};
use crate::effect::Outcome;
use crate::snapshot::{Change, Origin};

/// An object of any kind.
pub fn object() -> BoxedStrategy<Object> {
    prop_oneof![
        4 => binding().prop_map(Object::from),
        4 => export().prop_map(Object::from),
        3 => schema().prop_map(Object::from),
        1 => conversion().prop_map(Object::from),
        3 => logical_cluster().prop_map(Object::from),
        2 => crd().prop_map(Object::from),
        2 => bound_crd().prop_map(Object::from),
    ]
    .boxed()
}

/// Where something is seen.
pub fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![3 => Just(Origin::Local), 1 => Just(Origin::Global)]
}

/// A resourceVersion about those of a world's objects; or none, or one that is no number.
pub fn resource_version() -> impl Strategy<Value = Text> {
    prop_oneof![
        16 => (95u32..130).prop_map(|version| Text::from(version.to_string())),
        1 => Just(Text::default()),
        1 => Just("0".into()),
        1 => Just("spring".into()),
        1 => Just("100000000000000000000000000".into()),
    ]
}

/// A change of any kind that knows nothing of the world to which it happens: it may be late, doubled,
/// or about something that never was.
pub fn change() -> BoxedStrategy<Change> {
    let versioned = (object(), weighted(0.5, resource_version())).prop_map(|(mut object, version)| {
        if let Some(version) = version {
            object.metadata_mut().resource_version = Some(version.to_string());
        }
        object
    });
    let (versioned, kind) = (versioned.boxed(), || select(&Kind::ALL));
    prop_oneof![
        8 => (origin(), versioned.clone()).prop_map(|(origin, object)| put(origin, object)),
        3 => (origin(), versioned.clone()).prop_map(|(origin, object)| {
            let version = object.metadata().resource_version.clone().unwrap_or_default();
            delete(origin, &object, version.into())
        }),
        1 => (origin(), kind(), resource_version())
            .prop_map(|(origin, kind, resource_version)| Change::Bookmark { origin, kind, resource_version }),
        1 => (origin(), kind(), vec(versioned, 0..4), resource_version()).prop_map(
            |(origin, kind, objects, resource_version)| Change::List { origin, kind, objects, resource_version }
        ),
    ]
    .boxed()
}

fn put(origin: Origin, object: Object) -> Change {
    Change::Put { origin, object: Box::new(object) }
}

fn delete(origin: Origin, object: &Object, resource_version: Text) -> Change {
    Change::Delete { origin, kind: object.kind(), key: object.key(), resource_version }
}

/// One thing that somebody does to a world.
#[derive(Clone, Debug)]
enum Deed {
    /// Changes one thing of an object, counted round.
    Touch(u8, Box<Touch>),
    /// Told with the version of the deletion, or the last that the object had.
    Delete(u8, bool),
    /// A CRD of a workspace comes, or is another.
    Crd(OwnCrdSpec),
    /// Deletes an object and makes a like one, with another uid.
    Recreate(u8),
    /// Puts back what an earlier deed took.
    Restore,
    Export(Origin, ExportSpec),
    Binding(BindingSpec),
    Any(Origin, Box<Object>),
}

/// A world, and what then happened to it. [`Debug`](fmt::Debug) shows the world before and one change
/// a line.
#[derive(Clone)]
pub struct History {
    /// The world before.
    pub before: World,
    /// What happened, in order, with rising resourceVersions.
    pub changes: Vec<Change>,
    /// The world afterwards.
    pub after: World,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}and then", self.before)?;
        for change in &self.changes {
            writeln!(f, "  {}", serde_json::to_string(change).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

/// Resource versions of what happens are higher than all in a generated world.
const FIRST_VERSION: u32 = 1000;

impl History {
    fn new(spec: &WorldSpec, deeds: &[Deed]) -> Self {
        let before = spec.world();
        let mut history = Self { after: before.clone(), before, changes: Vec::new() };
        let mut gone: Option<(Origin, Object)> = None;
        for deed in deeds {
            match deed {
                Deed::Touch(which, touch) => {
                    let Some((origin, mut object)) = history.pick(*which) else { continue };
                    touch.apply(&mut object);
                    history.put(origin, object);
                }
                Deed::Crd(crd) => history.put(Origin::Local, crd.crd().into()),
                Deed::Delete(which, as_it_was) => {
                    let Some((origin, object)) = history.pick(*which) else { continue };
                    let last = object.metadata().resource_version.clone().filter(|_| *as_it_was);
                    history.delete(origin, &object, last);
                    gone = Some((origin, object));
                }
                Deed::Recreate(which) => {
                    let Some((origin, mut object)) = history.pick(*which) else { continue };
                    history.delete(origin, &object, None);
                    let uid = &mut object.metadata_mut().uid;
                    *uid = uid.as_deref().map(next_uid);
                    history.put(origin, object);
                }
                Deed::Restore => {
                    let Some((origin, object)) = gone.take() else { continue };
                    history.put(origin, object);
                }
                Deed::Export(origin, export) => history.put(*origin, export.export().into()),
                Deed::Binding(binding) => history.put(Origin::Local, binding.binding(&spec.exports).into()),
                Deed::Any(origin, object) => {
                    let has_copies =
                        matches!(object.kind(), Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion);
                    history.put(if has_copies { *origin } else { Origin::Local }, (**object).clone());
                }
            }
        }
        history
    }

    fn pick(&self, which: u8) -> Option<(Origin, Object)> {
        let at = usize::from(which).checked_rem(self.after.objects.len())?;
        self.after.objects.get(at).cloned()
    }

    fn next_version(&self) -> String {
        (u32::try_from(self.changes.len()).unwrap_or(u32::MAX).saturating_add(FIRST_VERSION)).to_string()
    }

    fn put(&mut self, origin: Origin, mut object: Object) {
        object.metadata_mut().resource_version = Some(self.next_version());
        self.changes.push(put(origin, object.clone()));
        self.after.put(origin, object);
    }

    fn delete(&mut self, origin: Origin, object: &Object, version: Option<String>) {
        let version = version.unwrap_or_else(|| self.next_version());
        self.changes.push(delete(origin, object, version.into()));
        self.after.remove(origin, object.kind(), &object.key());
    }

    /// The objects that are ever in it, each once.
    pub fn keys(&self) -> Vec<(Origin, Kind, BindingKey)> {
        let mut keys: Vec<_> =
            self.before.objects.iter().map(|(at, object)| (*at, object.kind(), object.key())).collect();
        keys.extend(self.changes.iter().filter_map(|change| match change {
            Change::Put { origin, object } => Some((*origin, object.kind(), object.key())),
            _ => None,
        }));
        keys.sort();
        keys.dedup();
        keys
    }
}

fn deed() -> BoxedStrategy<Deed> {
    prop_oneof![
        10 => (any::<u8>(), touch()).prop_map(|(which, touch)| Deed::Touch(which, Box::new(touch))),
        4 => (any::<u8>(), prop::bool::weighted(0.3)).prop_map(|(which, as_it_was)| Deed::Delete(which, as_it_was)),
        2 => super::exports::own_crd_spec().prop_map(Deed::Crd),
        3 => any::<u8>().prop_map(Deed::Recreate),
        2 => Just(Deed::Restore),
        2 => (origin(), super::exports::export_spec()).prop_map(|(origin, export)| Deed::Export(origin, export)),
        2 => binding_spec().prop_map(Deed::Binding),
        2 => (origin(), object()).prop_map(|(origin, object)| Deed::Any(origin, Box::new(object))),
    ]
    .boxed()
}

/// A world and up to so many deeds of those who live in it: small changes of one thing each,
/// deletions, new objects, and ones created anew under their old name.
pub fn history(deeds: usize) -> BoxedStrategy<History> {
    (world_spec(), vec(deed(), 0..=deeds)).prop_map(|(world, deeds)| History::new(&world, &deeds)).boxed()
}

/// What a server says when it refuses.
fn status(code: i32, reason: &str, message: &str) -> Status {
    Status {
        code: Some(code),
        reason: Some(reason.into()).filter(|reason: &String| !reason.is_empty()),
        message: Some(message.into()).filter(|message: &String| !message.is_empty()),
        status: Some("Failure".into()),
        ..Status::default()
    }
}

fn details(status: Status, causes: Vec<StatusCause>, retry_after_seconds: Option<i32>) -> Status {
    let details = StatusDetails { causes: Some(causes), retry_after_seconds, ..StatusDetails::default() };
    Status { details: Some(details), ..status }
}

fn cause(reason: &str, message: &str, field: &str) -> StatusCause {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    StatusCause { reason: text(reason), message: text(message), field: text(field) }
}

/// A refusal: of every reason that makes a difference, with causes and a wait where servers send them.
pub fn refusal() -> BoxedStrategy<Status> {
    let causes = prop_oneof![
        Just(vec![]),
        Just(vec![cause("FieldValueInvalid", "may not be so", "spec.names.kind")]),
        Just(vec![
            cause("FieldValueRequired", "has to be there", "spec.versions[0].schema"),
            cause("FieldValueInvalid", "is too long", ""),
        ]),
    ];
    let wait = prop_oneof![Just(None), Just(Some(0)), Just(Some(7)), Just(Some(30))];
    prop_oneof![
        2 => Just(status(404, "NotFound", "there is none")),
        2 => Just(status(409, "AlreadyExists", "there is one already")),
        3 => causes.prop_map(|causes| details(status(422, "Invalid", "it is invalid"), causes, None)),
        3 => wait.prop_map(|wait| details(status(429, "TooManyRequests", "later"), vec![], wait)),
        1 => Just(status(403, "Forbidden", "not you")),
        1 => Just(status(500, "InternalError", "Internal error occurred: a bad day")),
        1 => Just(details(status(504, "Timeout", "too slow"), vec![], Some(3))),
        1 => Just(status(410, "Expired", "")),
        1 => Just(status(503, "", "")),
    ]
    .boxed()
}

/// A conflict: of versions, or of field managers.
pub fn conflict() -> BoxedStrategy<Status> {
    let of_managers = cause("FieldManagerConflict", "conflict with \"kubectl\"", ".metadata.annotations");
    prop_oneof![
        3 => Just(status(409, "Conflict", "Operation cannot be fulfilled: the object has been modified")),
        1 => Just(details(status(409, "Conflict", "Apply failed with 1 conflict"), vec![of_managers], None)),
        1 => Just(details(status(409, "Conflict", ""), vec![], Some(2))),
    ]
    .boxed()
}

/// What comes of an effect, of every sort, whatever the effect was: objects of any kind, conflicts
/// with what the object is now or that it is gone, refusals, and no answer.
pub fn outcome() -> BoxedStrategy<Outcome> {
    prop_oneof![
        4 => object().prop_map(Outcome::done),
        4 => (conflict(), weighted(0.8, object())).prop_map(|(status, current)| Outcome::Conflict {
            status: Box::new(status),
            current: current.map(Box::new),
        }),
        4 => refusal().prop_map(|status| Outcome::Refused(Box::new(status))),
        1 => Just(Outcome::NoAnswer("connection lost".into())),
    ]
    .boxed()
}
