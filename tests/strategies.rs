//! Generated worlds reach what the recorded cases of the original reach: every condition and reason, every
//! effect, every end of a pass, every deviation.

#![cfg(all(feature = "proptest", feature = "sim"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use apibinding::api::{BindingKey, Kind, Object, Phase};
use apibinding::effect::{Effect, Outcome, Retry};
use apibinding::sim::laws::{Course, Model, Reads, Server, run_with};
use apibinding::snapshot::{Annotation, Change, Home, Layer, Layout, Snapshot};
use apibinding::strategies::{World, change, outcome, world};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};

const CASES: usize = 3000;

/// What was reached, and how often.
#[derive(Default)]
struct Reached(BTreeMap<String, usize>);

impl Reached {
    fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn note_if(&mut self, what: &str, is_so: bool) {
        if is_so {
            self.note(what);
        }
    }

    fn check(&self, wanted: &[&str]) {
        let missing: Vec<&&str> = wanted.iter().filter(|what| !self.0.contains_key(**what)).collect();
        let shown: Vec<String> = self.0.iter().map(|(what, count)| format!("{count:6} {what}")).collect();
        assert!(missing.is_empty(), "not reached: {missing:#?}\nreached:\n{}", shown.join("\n"));
    }
}

fn runner() -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..Config::default() })
}

fn kind_of(effect: &Effect) -> String {
    match effect {
        Effect::CreateCrd(_) => "create".into(),
        Effect::ReadApiBinding(_) => "read binding".into(),
        Effect::ReadCrd(_) => "read CRD".into(),
        Effect::PatchLogicalCluster(patch) => {
            format!("lock as {}{}", patch.field_manager, if patch.force { ", forced" } else { "" })
        }
        Effect::PatchApiBindingStatus(_) => "commit".into(),
        other => panic!("{other}"),
    }
}

/// The reason, the causes and the wait of an answer.
fn kind_of_outcome(outcome: &Outcome) -> String {
    let status = match outcome {
        Outcome::Done(_) => return "done".into(),
        Outcome::NoAnswer(_) => return "no answer".into(),
        Outcome::Conflict { status, current } => {
            let details = status.details.iter().flat_map(|details| details.causes.iter().flatten());
            let of_managers = details.into_iter().any(|cause| cause.reason.as_deref() == Some("FieldManagerConflict"));
            let sort = if of_managers { "conflict of managers" } else { "conflict" };
            return format!("{sort}{}", if current.is_none() { ", gone" } else { "" });
        }
        Outcome::Refused(status) => status,
        other => panic!("{other}"),
    };
    let details = status.details.as_ref();
    let causes = details.and_then(|details| details.causes.as_ref()).is_some_and(|causes| !causes.is_empty());
    let wait = details.and_then(|details| details.retry_after_seconds).is_some_and(|seconds| seconds > 0);
    let reason = status.reason.as_deref().unwrap_or("no reason");
    format!("{reason}{}{}", if causes { ", causes" } else { "" }, if wait { ", wait" } else { "" })
}

/// What deviates from the original in a course, as far as it can be told from outside.
fn deviations(reached: &mut Reached, world: &World, snapshot: &Snapshot, key: &BindingKey, course: &Course) {
    let Some(binding) = snapshot.binding(key) else {
        let releases = |effect: &Effect| matches!(effect, Effect::PatchLogicalCluster(_));
        return reached.note_if("D7, of nobody", course.effects().iter().any(releases));
    };
    let status = course.status.clone().unwrap_or_default();
    let said = |text: &str| status.conditions.iter().any(|condition| condition.message.contains(text));
    let neighbours = || world.bindings().into_iter().filter(|other| other.cluster == key.cluster);
    let known = |other: &BindingKey| snapshot.binding(other).unwrap();
    let listed = || neighbours().flat_map(|other| known(&other).status.bound_resources.to_vec());
    let phased = matches!(binding.status.phase, Phase::Binding | Phase::Bound);
    let conflict = said("naming conflict with");
    reached.note_if("D1", phased && listed().any(|bound| snapshot.bound_crd(&bound.schema.uid).is_none()));
    let unreferenced = neighbours().any(|other| known(&other).reference.is_none());
    reached.note_if("D2", conflict && unreferenced && said("naming conflict with APIBinding") && said("\": spec."));
    reached.note_if("D11", conflict && said("Unable to bind APIs: naming"));
    reached.note_if(
        "D16",
        status.condition("InitialBindingCompleted").is_some()
            && binding.status.condition("InitialBindingCompleted").is_none(),
    );
    reached.note_if("D17", said(" (APIBinding \"") || said(" (CustomResourceDefinition)"));
    let own_crds =
        || world.objects.iter().filter(|(_, object)| object.kind() == Kind::Crd && object.key().cluster == key.cluster);
    let crd = |key: &BindingKey| snapshot.crd(&key.cluster, &key.name).unwrap();
    reached.note_if(
        "D14",
        conflict
            && own_crds()
                .any(|(_, object)| said(&format!("\"{}\"", object.key().name)) && !crd(&object.key()).names_judged),
    );
    let home = snapshot.logical_cluster(&key.cluster);
    let bound = |what: &str| status.conditions.iter().any(|condition| condition.message.contains(what));
    let mut failed_create = false;
    let mut conflicts = (0, 0);
    for exchange in &course.exchanges {
        let (effect, outcome) = (&exchange.effect, kind_of_outcome(&exchange.outcome));
        match effect {
            Effect::CreateCrd(_) => {
                reached.note_if("D5", outcome == "AlreadyExists");
                failed_create |=
                    !matches!(outcome.as_str(), "done" | "AlreadyExists") && !outcome.starts_with("Invalid");
            }
            Effect::PatchLogicalCluster(patch) => {
                conflicts.0 += usize::from(outcome.starts_with("conflict"));
                reached.note_if(
                    "D13",
                    outcome != "done" && !outcome.starts_with("conflict") && bound("Unable to bind APIs:"),
                );
                reached.note_if("D6", outcome.starts_with("conflict"));
                reached.note_if("D23", patch.force && patch.field_manager == "kcp-apibinding");
                let seen = exchange.seen.logical_cluster(&key.cluster).unwrap();
                reached.note_if(
                    "D18, unreadable",
                    matches!(seen.bindings, Annotation::Unreadable(_)) && snapshot.layout() == Layout::Split,
                );
                let text = patch.body.to_value()["metadata"]["annotations"][Layer::Bindings.annotation()].clone();
                let after: BTreeMap<String, serde_json::Value> =
                    serde_json::from_str(text.as_str().unwrap_or("{}")).unwrap();
                let gone = |layer: &Annotation| {
                    layer
                        .locks()
                        .is_some_and(|locks| locks.iter().any(|(resource, _)| !after.contains_key(resource.as_str())))
                };
                reached.note_if("D7, of a neighbour", text.is_string() && gone(&seen.bindings));
            }
            Effect::PatchApiBindingStatus(_) => {
                conflicts.1 += usize::from(outcome.starts_with("conflict"));
                reached.note_if("D8", outcome.starts_with("conflict"));
            }
            Effect::ReadCrd(read) => {
                reached.note_if("D24", outcome == "NotFound");
                reached.note_if("D15", read.name.ends_with(".core"));
            }
            _ => {}
        }
    }
    reached.note_if("five lock conflicts", conflicts.0 >= 5);
    reached.note_if("five commit conflicts", conflicts.1 == 5);
    reached.note_if("D19", matches!(course.retry, Retry::After(_)));
    reached
        .note_if("D22", failed_create && !binding.claims.is_empty() && matches!(course.retry, Retry::Backoff { .. }));
    let covered = |home: &Home| {
        let over = |lock: &apibinding::snapshot::Lock| lock.end().is_some_and(|end| snapshot.now() > end);
        home.crds.locks().is_some_and(|locks| {
            let mut over = locks.iter().filter(|(_, lock)| over(lock)).map(|(resource, _)| resource);
            over.any(|resource| home.bindings.get(resource).is_some_and(|lock| lock.is_of_binding()))
        })
    };
    reached.note_if("D26", phased && home.is_some_and(covered));
    let locked = |resource: &apibinding::api::GroupResource| {
        home.is_some_and(|home| {
            Layer::ALL.iter().any(|layer| home.layer(*layer).get(resource).is_some_and(|lock| lock.holds()))
        })
    };
    let skipped = |bound: &apibinding::api::BoundResource| said(&format!("{} (APIBinding", bound.group_resource()));
    reached.note_if("D18, by status", listed().any(|bound| skipped(&bound) && !locked(&bound.group_resource())));
}

#[test]
fn worlds_reach_everything() {
    let mut runner = runner();
    let strategy = (world(), vec(weighted(0.5, outcome()), 0..24), outcome());
    let mut reached = Reached::default();
    for case in 0..CASES {
        let (world, faults, again) = strategy.new_tree(&mut runner).unwrap().current();
        let reads = [Reads::Expected, Reads::True, Reads::Found][case % 3];
        let faults = match case % 4 {
            0 | 1 => Vec::new(),
            2 => faults,
            _ => vec![Some(again); 24],
        };
        let snapshot = world.snapshot();
        let mut known = Model::new(world.layout, world.now);
        world.changes().iter().for_each(|change| known.apply(change));
        reached.note(format!("layout {:?}", world.layout));
        let ghost = BindingKey::new("meadow", "yew");
        for key in world.bindings().into_iter().chain([ghost]) {
            let mut server = Server::new(&known, reads);
            let course = run_with(&mut snapshot.clone(), &mut server, &key, &faults, |_, _, _| Ok(())).unwrap();
            for exchange in &course.exchanges {
                let effect = kind_of(&exchange.effect);
                let base = effect.split(" as ").next().unwrap();
                reached.note(format!("{base}: {}", kind_of_outcome(&exchange.outcome)));
                reached.note(effect);
            }
            let retry = match course.retry {
                Retry::Forget => "forget",
                Retry::Now => "now",
                Retry::After(_) => "after",
                Retry::Backoff { at_least: None } => "backoff",
                _ => "backoff, wait",
            };
            reached.note(format!("retry {retry}"));
            for condition in course.status.iter().flat_map(|status| &status.conditions) {
                let words: Vec<&str> = [&condition.kind, &condition.status, &condition.reason, &condition.severity]
                    .into_iter()
                    .map(|word| word.as_str())
                    .filter(|word| !word.is_empty())
                    .collect();
                reached.note(words.join(" "));
                for message in MESSAGES.iter().filter(|message| condition.message.contains(**message)) {
                    reached.note(*message);
                }
            }
            deviations(&mut reached, &world, &snapshot, &key, &course);
        }
        for (_, object) in &world.objects {
            schema_forms(&mut reached, &snapshot, object);
        }
    }
    reached.check(WANTED);
    reached.check(MESSAGES);
}

fn schema_forms(reached: &mut Reached, snapshot: &Snapshot, object: &Object) {
    let Object::ApiResourceSchema(schema) = object else { return };
    let Some(known) = snapshot.schema(&object.key().cluster, &object.key().name) else { return };
    reached
        .note_if("D3", schema.spec.conversion.as_ref().is_some_and(|c| c.strategy == "Webhook") && known.crd.is_err());
    reached.note_if("D20", schema.spec.versions.iter().any(|version| !version.selectable_fields.is_empty()));
    reached.note_if("D4", known.names.singular.is_empty());
    reached.note_if("schema of two versions", schema.spec.versions.len() > 1 && known.crd.is_ok());
    reached.note_if("schema that lacks a conversion", known.lacks_conversion);
}

#[test]
fn changes_and_outcomes_reach_everything() {
    let mut runner = runner();
    let (changes, outcomes) = (change(), outcome());
    let mut reached = Reached::default();
    for _ in 0..2000 {
        match changes.new_tree(&mut runner).unwrap().current() {
            Change::Put { origin, object } => reached.note(format!("put {origin:?} {}", object.kind())),
            Change::Delete { kind, .. } => reached.note(format!("delete {kind}")),
            Change::Bookmark { .. } => reached.note("bookmark"),
            Change::List { objects, .. } => {
                reached.note(format!("list of {}", if objects.is_empty() { "none" } else { "some" }))
            }
            other => panic!("{other:?}"),
        }
        reached.note(kind_of_outcome(&outcomes.new_tree(&mut runner).unwrap().current()));
    }
    for kind in Kind::ALL {
        reached.check(&[&format!("put Local {kind}"), &format!("delete {kind}")]);
    }
    reached.check(&["put Global APIExport", "bookmark", "list of none", "list of some"]);
    reached.check(&[
        "done",
        "no answer",
        "conflict",
        "conflict, gone",
        "conflict of managers",
        "NotFound",
        "AlreadyExists",
        "Invalid",
        "Invalid, causes",
        "TooManyRequests",
        "TooManyRequests, wait",
        "Forbidden",
        "InternalError",
        "no reason",
    ]);
}

/// Parts of messages, of every verdict of SPEC 4 and its deviations.
const MESSAGES: &[&str] = &[
    "Missing APIExport reference",
    "|birds not found",
    "multiple apiexports.apis.kcp.io found for ",
    "is missing status.identityHash",
    "Please contact the APIExport owner to resolve: APIResourceSchema \"",
    "logicalcluster.core.kcp.io \"cluster\" not found",
    "failed to unmarshal ResourceBindings annotation: ",
    "annotation not found, migration has to happen first",
    "naming conflict with CustomResourceDefinition \"",
    "bound to local APIExport \"",
    "bound to APIExport ",
    "spec.names.plural=",
    "spec.names.singular=",
    "spec.names.shortNames=[",
    "spec.names.kind=",
    "spec.names.listKind=",
    " is invalid: ",
    "An internal error prevented the APIBinding process from completing.",
    "Unable to bind APIs: Internal error occurred",
    "Waiting for API(s) to be established: ",
    "bound by other APIBindings or CRDs: ",
];

/// Conditions, effects with their answers, ends of passes, deviations. Not told apart here: D9, D10, D12,
/// D21, D25, which show in words or in what is not done.
const WANTED: &[&str] = &[
    "layout Split",
    "layout Single",
    "Ready True",
    "Ready False WaitingForEstablished Info",
    "Ready False NamingConflicts Error",
    "Ready False InternalError Error",
    "Ready False LogicalClusterNotFound Error",
    "Ready False APIResourceSchemaInvalid Error",
    "Ready Unknown Odd",
    "APIExportValid True",
    "APIExportValid False APIExportInvalidReference Error",
    "APIExportValid False APIExportNotFound Error",
    "APIExportValid False InternalError Error",
    "APIExportValid False MissingIdentityHash Warning",
    "BindingUpToDate True",
    "BindingUpToDate False WaitingForEstablished Info",
    "BindingUpToDate False NamingConflicts Error",
    "BindingUpToDate False InternalError Error",
    "BindingUpToDate False LogicalClusterNotFound Error",
    "BindingUpToDate False APIResourceSchemaInvalid Error",
    "InitialBindingCompleted True",
    "InitialBindingCompleted False WaitingForEstablished Info",
    "InitialBindingCompleted False NamingConflicts Error",
    "InitialBindingCompleted False InternalError Error",
    "InitialBindingCompleted False LogicalClusterNotFound Error",
    "InitialBindingCompleted False APIResourceSchemaInvalid Error",
    "create",
    "create: done",
    "create: AlreadyExists",
    "create: Invalid",
    "create: Invalid, causes",
    "create: TooManyRequests, wait",
    "create: Forbidden",
    "create: no answer",
    "read binding",
    "read binding: done",
    "read binding: NotFound",
    "read binding: InternalError",
    "read CRD",
    "read CRD: done",
    "read CRD: NotFound",
    "lock as kcp-apibinding",
    "lock as kcp-apibinding, forced",
    "lock as apibinding-reconciler-locks, forced",
    "lock: conflict",
    "lock: conflict of managers",
    "lock: conflict, gone",
    "lock: Invalid",
    "lock: NotFound",
    "lock: no answer",
    "commit",
    "commit: done",
    "commit: conflict",
    "commit: conflict, gone",
    "commit: NotFound",
    "commit: InternalError",
    "retry forget",
    "retry now",
    "retry after",
    "retry backoff",
    "retry backoff, wait",
    "schema of two versions",
    "schema that lacks a conversion",
    "five lock conflicts",
    "D1",
    "D2",
    "D3",
    "D4",
    "D5",
    "D6",
    "D7, of a neighbour",
    "D7, of nobody",
    "D8",
    "D11",
    "D13",
    "D14",
    "D15",
    "D16",
    "D17",
    "D18, by status",
    "D18, unreadable",
    "D19",
    "D20",
    "D22",
    "D23",
    "D24",
    "D26",
];
