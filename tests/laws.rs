//! The laws of DESIGN.md as properties of generated worlds.
//!
//! `PROPTEST_CASES` sets how many worlds each law is asked in, `PROPTEST_RNG_SEED` which ones; without
//! them it is the same few each time. A failure prints the smallest world found.

#![cfg(all(feature = "proptest", feature = "sim"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt::Debug;

use apibinding::api::{ApiBinding, ApiBindingStatus, BindingKey, Kind, Object};
use apibinding::effect::{Effect, Outcome};
use apibinding::pass::{Pass, Step};
use apibinding::reconcile;
use apibinding::sim::Chance;
use apibinding::sim::laws::{self, Bounds, Course, Model, Reads, Server, Verdict, run, run_with};
use apibinding::snapshot::{Change, Origin, Snapshot};
use apibinding::strategies::{History, World, change, history, outcome, world};
use apibinding::wakeup::{self, wakeup};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// Asks a law in so many worlds.
fn law<S>(cases: u32, worlds: S, ask: impl Fn(S::Value) -> Result<(), String>)
where
    S: Strategy,
    S::Value: Debug,
{
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(7);
    }
    match TestRunner::new(config).run(&worlds, |world| ask(world).map_err(TestCaseError::fail)) {
        Ok(()) => {}
        Err(TestError::Fail(why, world)) => panic!("{why}\n\nin {world:?}"),
        Err(TestError::Abort(why)) => panic!("gave up: {why}"),
    }
}

/// Answers that go wrong, some of them, or one and the same again and again.
fn faults() -> impl Strategy<Value = Vec<Option<Outcome>>> {
    prop_oneof![
        2 => vec(weighted(0.5, outcome()), 0..24),
        1 => (outcome(), 0..4usize).prop_map(|(outcome, at)| {
            let before = std::iter::repeat_n(None, at);
            before.chain(std::iter::repeat_n(Some(outcome), 24)).collect()
        }),
    ]
}

fn reads() -> impl Strategy<Value = Reads> {
    prop_oneof![3 => Just(Reads::Expected), 2 => Just(Reads::True), 1 => Just(Reads::Found)]
}

/// The bindings of a world, with their keys.
fn bindings(world: &World) -> Vec<(BindingKey, ApiBinding)> {
    let bindings = world.objects.iter().filter_map(|(_, object)| match object {
        Object::ApiBinding(binding) => Some((binding.key(), binding.clone())),
        _ => None,
    });
    bindings.collect()
}

/// What is known where all of a world is known.
fn model(world: &World) -> Model {
    let mut model = Model::new(world.layout, world.now);
    world.changes().iter().for_each(|change| model.apply(change));
    model
}

#[test]
fn total() {
    let strategy = (history(6), vec(change(), 0..4), vec(outcome(), 0..12));
    law(3000, strategy, |(history, noise, garbage)| {
        let mut snapshot = history.before.snapshot();
        let mut seen = wakeup::all(&snapshot);
        for change in history.changes.iter().chain(&noise) {
            let applied = snapshot.apply(change.clone());
            wakeup(&snapshot, &applied);
            seen.extend(wakeup::all(&snapshot));
        }
        let _ = format!("{snapshot:?}");
        for (_, binding) in bindings(&history.before).into_iter().chain(bindings(&history.after)) {
            let (_, effects) = reconcile(&snapshot, &binding);
            let _ = format!("{effects:?}");
        }
        // Answers that have nothing to do with what was asked.
        for key in seen {
            let (mut snapshot, mut garbage) = (snapshot.clone(), garbage.iter().cycle());
            let mut pass = Pass::new(key);
            for _ in 0..200 {
                match pass.poll(&snapshot) {
                    Step::Done(_) => break,
                    _ => {
                        let outcome =
                            garbage.next().cloned().unwrap_or_else(|| Outcome::NoAnswer("nothing to say".into()));
                        for change in pass.observe(outcome) {
                            snapshot.apply(change);
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn deterministic() {
    law(150, (world(), any::<u64>()), |(world, seed)| laws::deterministic(&model(&world), &mut Chance::new(seed)));
}

#[test]
fn predicts() {
    law(400, world(), |world| {
        let (model, snapshot) = (model(&world), world.snapshot());
        world.bindings().iter().try_for_each(|key| laws::predicts(&model, &snapshot, key))
    });
}

#[test]
fn settles() {
    law(300, (world(), reads()), |(world, reads)| {
        let (model, snapshot) = (model(&world), world.snapshot());
        wakeup::all(&snapshot).iter().try_for_each(|key| {
            laws::settles(&model, &snapshot, key, reads)?;
            arrives(&model, &snapshot, key, reads)
        })
    });
}

/// A pass in which nothing failed leaves a status that says what is so.
fn arrives(model: &Model, snapshot: &Snapshot, key: &BindingKey, reads: Reads) -> Verdict {
    if snapshot.binding(key).is_none() {
        return Ok(());
    }
    let (mut known, mut after) = (model.clone(), snapshot.clone());
    let course = run(&mut after, &mut Server::new(model, reads), key)?;
    for exchange in course.exchanges.iter().filter(|exchange| !exchange.effect.is_read()) {
        match &exchange.outcome {
            Outcome::Done(object) => known.apply(&Change::put(Object::clone(object))),
            _ => return Ok(()),
        }
    }
    let is_new = snapshot.binding(key).is_some_and(|binding| binding.status.phase.as_str().is_empty());
    if !is_new {
        laws::reached(&known, key, &course.status.unwrap_or_default())?;
    }
    laws::claimed(&known, key, |cluster, name| after.schema(cluster, name).is_some_and(|schema| schema.crd.is_ok()))
}

/// A server that has gone on.
fn server(history: &History, reads: Reads) -> Server {
    Server::new(&model(&history.after), reads)
}

/// Passes over what is known of a world, against a server that has gone on, with faults.
fn passes(
    history: &History,
    server: &Server,
    faults: &[Option<Outcome>],
    mut watch: impl FnMut(&BindingKey, &Snapshot, &Server, &Effect) -> Verdict,
    mut after: impl FnMut(&Course) -> Verdict,
) -> Verdict {
    for key in wakeup::all(&history.before.snapshot()) {
        let (mut snapshot, mut server) = (history.before.snapshot(), server.clone());
        let course = run_with(&mut snapshot, &mut server, &key, faults, |seen, server, effect| {
            watch(&key, seen, server, effect).map_err(|why| format!("{key}: {effect}: {why}"))
        })?;
        after(&course).map_err(|why| format!("{key}: {why}:\n{:#?}", course.effects()))?;
    }
    Ok(())
}

#[test]
fn bounded() {
    law(300, (history(6), faults()), |(history, faults)| {
        passes(
            &history,
            &server(&history, Reads::True),
            &faults,
            |_, _, _, _| Ok(()),
            |course| {
                let mut bounds = Bounds::default();
                course.exchanges.iter().try_for_each(|exchange| {
                    bounds.planned(&exchange.effect)?;
                    bounds.answered(&exchange.outcome);
                    Ok(())
                })
            },
        )
    });
}

#[test]
fn confined() {
    law(1000, (history(6), faults(), reads(), 0..4u8), |(history, faults, reads, others)| {
        let watch = |key: &BindingKey, seen: &Snapshot, server: &Server, effect: &Effect| {
            let at = |name| BindingKey::new(key.cluster.clone(), name);
            laws::confined(
                key,
                seen,
                effect,
                |lock| {
                    let has_uid = |uid: &str| lock.uid.is_empty() || *lock.uid == *uid;
                    let there = server.get(Kind::ApiBinding, &at(lock.name.clone()));
                    match reads {
                        Reads::Expected => {
                            seen.binding(&at(lock.name.clone())).is_some_and(|binding| has_uid(&binding.meta.uid))
                        }
                        Reads::True => {
                            there.is_some_and(|object| has_uid(object.metadata().uid.as_deref().unwrap_or_default()))
                        }
                        _ => lock.uid.is_empty(),
                    }
                },
                |resource| match reads {
                    Reads::Expected => false,
                    Reads::True => server.get(Kind::Crd, &at(resource.crd_name())).is_some(),
                    _ => true,
                },
            )
        };
        let server = server(&history, reads);
        let server = match others {
            0 => server.with_newcomers(),
            1 => server.with_successors(),
            _ => server,
        };
        passes(&history, &server, &faults, watch, |_| Ok(()))
    });
}

#[test]
fn monotone() {
    law(300, (history(3), faults()), |(history, faults)| {
        let before = history.before.snapshot();
        for (key, binding) in bindings(&history.before) {
            let (planned, _) = reconcile(&before, &binding);
            laws::monotone(&before, &key, &binding.status, &planned.status).map_err(|why| format!("{key}: {why}"))?;
        }
        let watch = |key: &BindingKey, seen: &Snapshot, _: &Server, effect: &Effect| {
            let Effect::PatchApiBindingStatus(patch) = effect else { return Ok(()) };
            let status: ApiBindingStatus = serde_json::from_value(patch.body.to_value()["status"].clone()).unwrap();
            laws::monotone(seen, key, &seen.binding(key).unwrap().status, &status)
        };
        passes(&history, &server(&history, Reads::True), &faults, watch, |_| Ok(()))
    });
}

/// The half of `exclusive` that one pass can keep; the other one takes a world that runs.
#[test]
fn exclusive() {
    law(3000, (history(3), faults()), |(history, faults)| {
        let watch = |key: &BindingKey, seen: &Snapshot, _: &Server, effect: &Effect| {
            let Effect::PatchApiBindingStatus(patch) = effect else { return Ok(()) };
            let status: ApiBindingStatus = serde_json::from_value(patch.body.to_value()["status"].clone()).unwrap();
            laws::newly_listed(seen, key, &status)?;
            laws::named_apart(seen, key, &status)
        };
        passes(&history, &server(&history, Reads::True), &faults, watch, |_| Ok(()))
    });
}

#[test]
fn woken() {
    law(400, (history(6), vec(change(), 0..3)), |(history, noise)| {
        let (mut snapshot, mut known) = (history.before.snapshot(), model(&history.before));
        for change in history.changes.iter().chain(&noise) {
            let before = (snapshot.clone(), known.clone());
            let applied = snapshot.apply(change.clone());
            known.apply(change);
            let woken = wakeup(&snapshot, &applied);
            laws::woken((&before.0, &before.1), (&snapshot, &known), &woken)
                .map_err(|why| format!("by {change:?}: {why}"))?;
        }
        Ok(())
    });
}

#[test]
fn indexed() {
    law(300, (history(10), vec(change(), 0..12)), |(history, noise)| {
        let (mut snapshot, mut known) = (history.before.snapshot(), model(&history.before));
        for change in history.changes.iter().chain(&noise) {
            snapshot.apply(change.clone());
            known.apply(change);
            laws::indexed(&snapshot, &known).map_err(|why| format!("after {change:?}: {why}"))?;
        }
        Ok(())
    });
}

#[test]
fn late() {
    law(300, (versioned(), any::<u64>()), |(history, seed)| {
        let all: Vec<Change> = history.before.changes().into_iter().chain(history.changes.clone()).collect();
        let nothing = Model::new(history.after.layout, history.after.now);
        laws::late(&nothing, &all, &mut Chance::new(seed))?;
        // And told in order it is what was there in the end.
        laws::indexed(&nothing.snapshot_of(all), &model(&history.after))
    });
}

/// A history of objects with versions: where one is missing the later arrival counts, so order matters.
fn versioned() -> impl Strategy<Value = History> {
    history(10).prop_map(|mut history| {
        for (_, object) in history.before.objects.iter_mut().chain(&mut history.after.objects) {
            object.metadata_mut().resource_version.get_or_insert("99".into());
        }
        history
    })
}

/// As `late`, with bookmarks and lists that tell the truth, after which old events still arrive: the
/// answer to a request overtakes no watch, but a watch may overtake an answer.
#[test]
fn late_after_lists() {
    let strategy = versioned().prop_flat_map(|history| {
        let steps = history.changes.len();
        (Just(history), vec((0..=steps, any::<u8>(), any::<bool>()), 0..4), any::<u64>())
    });
    law(300, strategy, |(history, lists, seed)| {
        let (mut snapshot, mut truth) = (history.before.snapshot(), model(&history.before));
        for at in 0..=history.changes.len() {
            for (_, which, is_bookmark) in lists.iter().filter(|(step, ..)| *step == at) {
                let resource_version = (999 + at).to_string().as_str().into();
                let kind = Kind::ALL[usize::from(*which) % 6];
                let has_copies = matches!(kind, Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion);
                let origin = if has_copies { Origin::ALL[usize::from(which >> 4) % 2] } else { Origin::Local };
                snapshot.apply(match is_bookmark {
                    true => Change::Bookmark { origin, kind, resource_version },
                    false => {
                        let objects = truth.of_kind(origin, kind).map(|object| Object::clone(object)).collect();
                        Change::List { origin, kind, objects, resource_version }
                    }
                });
            }
            if let Some(change) = history.changes.get(at) {
                snapshot.apply(change.clone());
                truth.apply(change);
            }
        }
        let after = model(&history.after);
        laws::indexed(&snapshot, &after).map_err(|why| format!("told in order, with lists: {why}"))?;
        let mut again: Vec<Change> = history.before.changes().into_iter().chain(history.changes).collect();
        Chance::new(seed).shuffle(&mut again);
        for change in again {
            snapshot.apply(change);
        }
        laws::indexed(&snapshot, &after).map_err(|why| format!("and then told again: {why}"))
    });
}

/// Worlds in which a law did not hold once, as small as they get.
mod found {
    use apibinding::api::Condition;
    use apibinding::snapshot::Layout;
    use serde_json::{Value, json};

    use super::*;

    fn object(kind: Kind, json: Value) -> Object {
        Object::from_json(kind, &json.to_string()).unwrap()
    }

    fn metadata(cluster: &str, name: &str, uid: &str) -> Value {
        json!({"name": name, "uid": uid, "resourceVersion": "100", "annotations": {"kcp.io/cluster": cluster}})
    }

    fn binding(name: &str, export: &str, bound: Value) -> Object {
        object(
            Kind::ApiBinding,
            json!({
                "metadata": metadata("meadow", name, &format!("uid-{name}")),
                "spec": {"reference": {"export": {"path": "farm", "name": export}}},
                "status": {"phase": "Bound", "boundResources": bound},
            }),
        )
    }

    fn home(locks: &str) -> Object {
        let mut home = metadata("meadow", "cluster", "uid-meadow");
        home["annotations"]["internal.apis.kcp.io/locks-bindings"] = json!(locks);
        object(Kind::LogicalCluster, json!({"metadata": home}))
    }

    fn world(objects: Vec<Object>) -> World {
        let mut world = World::new(Layout::Split, apibinding::strategies::PRESENT);
        for object in objects {
            world.put(Origin::Local, object);
        }
        world
    }

    fn export(name: &str, resources: Value) -> Object {
        let (metadata, status) = (metadata("farm", name, name), json!({"identityHash": format!("id-{name}")}));
        object(Kind::ApiExport, json!({"metadata": metadata, "spec": {"resources": resources}, "status": status}))
    }

    fn schema(plural: &str, singular: &str) -> Object {
        let names = json!({"plural": plural, "singular": singular, "kind": plural});
        let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": {}}]);
        let spec = json!({"group": "farm.example", "names": names, "scope": "Namespaced", "versions": versions});
        object(
            Kind::ApiResourceSchema,
            json!({"metadata": metadata("farm", plural, &format!("uid-{plural}")), "spec": spec}),
        )
    }

    fn entry(plural: &str) -> Value {
        json!({"name": plural, "group": "farm.example", "schema": plural, "storage": {"crd": {}}})
    }

    /// The bound CRD of `geese`, which a neighbour has bound, is missing. A claim creates it, after which
    /// it takes the name `goose` from `ganders`. The plan has to foresee that: D9 speaks of CRDs
    /// without a uid of their own yet.
    #[test]
    fn a_crd_that_a_plan_creates_takes_names_in_it() {
        let listed = json!([{"group": "farm.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-geese", "identityHash": "id-one"}}]);
        let mut claimant = binding("alder", "two", json!([]));
        let Object::ApiBinding(alder) = &mut claimant else { unreachable!() };
        alder.spec.permission_claims = serde_json::from_value(json!([{"group": "farm.example", "resource": "geese",
            "identityHash": "id-one", "verbs": ["*"], "state": "Accepted"}]))
        .unwrap();
        let alder = alder.clone();
        let world = world(vec![
            export("one", json!([entry("geese")])),
            export("two", json!([entry("ganders")])),
            schema("geese", "goose"),
            schema("ganders", "goose"),
            claimant,
            binding("birch", "one", listed),
            home("{}"),
        ]);
        let snapshot = world.snapshot();
        let (planned, _) = reconcile(&snapshot, &alder);
        let course =
            run(&mut snapshot.clone(), &mut Server::new(&model(&world), Reads::Expected), &alder.key()).unwrap();
        assert_eq!(course.status, Some(planned.status), "what the pass arrives at is not what was planned");
    }

    /// The same, and birch refers to its export in another way. What alder is about to be told names that.
    #[test]
    fn the_reference_of_who_lists_a_crd_to_come_wakes() {
        let listed = json!([{"group": "farm.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-geese", "identityHash": "id-one"}}]);
        let mut claimant = binding("alder", "two", json!([]));
        let Object::ApiBinding(alder) = &mut claimant else { unreachable!() };
        alder.spec.permission_claims = serde_json::from_value(json!([{"group": "farm.example", "resource": "geese",
            "identityHash": "id-one", "verbs": ["*"], "state": "Accepted"}]))
        .unwrap();
        let key = alder.key();
        let mut neighbour = binding("birch", "one", listed);
        let world = world(vec![
            export("one", json!([entry("geese")])),
            export("two", json!([entry("ganders")])),
            schema("geese", "goose"),
            schema("ganders", "goose"),
            claimant,
            neighbour.clone(),
            home("{}"),
        ]);
        neighbour.metadata_mut().resource_version = Some("101".into());
        let Object::ApiBinding(birch) = &mut neighbour else { unreachable!() };
        birch.spec.reference.export.as_mut().unwrap().path = "root:farm".into();
        let mut snapshot = world.snapshot();
        let applied = snapshot.apply(Change::put(neighbour));
        assert!(wakeup(&snapshot, &applied).contains(&key));
    }

    /// The only doubtful lock changes its holder, not its resource. Alder, as any binding of the
    /// workspace, asks for holders in doubt: now for another one.
    #[test]
    fn a_lock_that_comes_into_doubt_in_the_place_of_another_wakes() {
        let before = world(vec![
            export("one", json!([])),
            binding("alder", "one", json!([])),
            home(r#"{"barns.hill.example":{"n":"yew"}}"#),
        ]);
        let mut after = home(r#"{"barns.hill.example":{"n":"cedar"}}"#);
        after.metadata_mut().resource_version = Some("101".into());
        let mut snapshot = before.snapshot();
        let applied = snapshot.apply(Change::put(after));
        let alder = BindingKey::new("meadow", "alder");
        assert!(wakeup(&snapshot, &applied).contains(&alder));
    }

    fn crd(uid: &str, group: &str) -> Object {
        let names = json!({"plural": "geese", "singular": "goose", "kind": "geese"});
        let conditions =
            json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]);
        object(
            Kind::Crd,
            json!({
                "metadata": metadata("system:bound-crds", uid, &format!("crd-{uid}")),
                "spec": {"group": group, "names": names},
                "status": {"acceptedNames": names, "conditions": conditions},
            }),
        )
    }

    /// A neighbour has bound a resource of the same names in another group, and there are more bound CRDs
    /// of these names than the workspace lists: whichever of the two sets is gone through, only
    /// those of the schema's group are rivals (SPEC 6).
    #[test]
    fn names_of_another_group_are_free() {
        let listed = json!([{"group": "pond.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-pond", "identityHash": "id-one"}}]);
        let world = world(vec![
            export("one", json!([])),
            export("two", json!([entry("geese")])),
            schema("geese", "goose"),
            crd("uid-pond", "pond.example"),
            crd("uid-geese", "farm.example"),
            crd("uid-other", "farm.example"),
            binding("alder", "two", json!([])),
            binding("birch", "one", listed),
            home("{}"),
        ]);
        let key = BindingKey::new("meadow", "alder");
        let course = run(&mut world.snapshot(), &mut Server::new(&model(&world), Reads::Expected), &key).unwrap();
        let status = course.status.unwrap();
        assert!(status.condition(Condition::READY).unwrap().is_true(), "{status:?}");
    }

    /// An export that offers a resource twice, whose schema was created anew: the second entry is not in
    /// conflict with what the first one has just replaced.
    #[test]
    fn a_binding_is_no_rival_of_its_former_self() {
        let former = json!([{"group": "farm.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-former", "identityHash": "id-one"}}]);
        let world = world(vec![
            export("one", json!([entry("geese"), entry("geese")])),
            schema("geese", "goose"),
            crd("uid-geese", "farm.example"),
            crd("uid-former", "farm.example"),
            binding("alder", "one", former),
            home("{}"),
        ]);
        let (mut snapshot, mut server) = (world.snapshot(), Server::new(&model(&world), Reads::Expected));
        let key = BindingKey::new("meadow", "alder");
        let first = run(&mut snapshot, &mut server, &key).unwrap();
        let second = run(&mut snapshot, &mut server, &key).unwrap();
        assert_eq!(second.status, first.status);
    }
}
