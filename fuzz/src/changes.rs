//! Changes and outcomes as a stream of choices, against a naive model.

use std::sync::LazyLock;

use apibinding::api::{BindingKey, Kind, Object};
use apibinding::effect::Outcome;
use apibinding::pass::{Pass, Step};
use apibinding::sim::laws::{Model, indexed, woken};
use apibinding::sim::{Builder, PRESENT};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::wakeup::{all, wakeup};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::Bytes;

/// Objects of crowded worlds, several of each name.
static POOL: LazyLock<Vec<Object>> = LazyLock::new(|| {
    let worlds = (1..9).flat_map(|seed| Builder::new(seed).bound(seed % 2 == 0).build());
    worlds.map(|object| Object::from_typed_json(&object.to_string()).unwrap()).collect()
});

fn version(bytes: &mut Bytes<'_>) -> String {
    match bytes.below(20) {
        0 => String::new(),
        1 => "0".into(),
        2 => "spring".into(),
        3 => "100000000000000000000000000".into(),
        number => (number * 8 + bytes.below(8)).to_string(),
    }
}

fn change(bytes: &mut Bytes<'_>) -> Change {
    let origin = if bytes.below(4) == 0 { Origin::Global } else { Origin::Local };
    let mut object = POOL[(bytes.below(256) * 256 + bytes.below(256)) % POOL.len()].clone();
    let (kind, key): (Kind, BindingKey) = (object.kind(), object.key());
    match bytes.below(12) {
        0 | 1 => Change::Delete { origin, kind, key, resource_version: version(bytes).as_str().into() },
        2 => Change::Bookmark { origin, kind, resource_version: version(bytes).as_str().into() },
        3 => {
            let objects = (0..bytes.below(6)).map(|_| {
                let mut object = POOL[bytes.below(256) % POOL.len()].clone();
                object.metadata_mut().resource_version = Some(version(bytes));
                object
            });
            let objects: Vec<Object> = objects.collect();
            // A list has an object once.
            let mut listed: Vec<Object> = Vec::new();
            for object in objects {
                if !listed.iter().any(|other| other.kind() == object.kind() && other.key() == object.key()) {
                    listed.push(object);
                }
            }
            Change::List { origin, kind, objects: listed, resource_version: version(bytes).as_str().into() }
        }
        _ => {
            object.metadata_mut().resource_version = Some(version(bytes));
            Change::Put { origin, object: Box::new(object) }
        }
    }
}

fn outcome(bytes: &mut Bytes<'_>) -> Outcome {
    let refused =
        |code, reason: &str| Box::new(Status { code: Some(code), reason: Some(reason.into()), ..Status::default() });
    let object = Box::new(POOL[bytes.below(256) % POOL.len()].clone());
    match bytes.below(9) {
        0 => Outcome::Conflict { status: refused(409, "Conflict"), current: None },
        1 => Outcome::Conflict { status: refused(409, "Conflict"), current: Some(object) },
        2 => Outcome::Refused(refused(404, "NotFound")),
        3 => Outcome::Refused(refused(409, "AlreadyExists")),
        4 => Outcome::Refused(refused(422, "Invalid")),
        5 => Outcome::Refused(refused(500, "InternalError")),
        6 => Outcome::NoAnswer("gone".into()),
        _ => Outcome::Done(object),
    }
}

/// After every change the snapshot equals one built from scratch; whom it concerns is woken; and a pass ends,
/// whatever it is answered.
pub fn changes(data: &[u8]) {
    let mut bytes = Bytes(data);
    let layout = if bytes.below(4) == 0 { Layout::Single } else { Layout::Split };
    let mut snapshot = Snapshot::new(layout);
    snapshot.set_now(PRESENT);
    let mut model = Model::new(layout, PRESENT);
    let mut steps = 0;
    while !bytes.is_empty() && steps < 60 {
        steps += 1;
        let (before, known) = (snapshot.clone(), model.clone());
        let change = change(&mut bytes);
        let applied = snapshot.apply(change.clone());
        model.apply(&change);
        indexed(&snapshot, &model).unwrap_or_else(|why| panic!("after {change:?}: {why}"));
        if steps % 8 == 0 {
            let keys = wakeup(&snapshot, &applied);
            woken((&before, &known), (&snapshot, &model), &keys).unwrap_or_else(|why| panic!("by {change:?}: {why}"));
        }
    }
    for key in all(&snapshot).into_iter().take(3) {
        let mut pass = Pass::new(key.clone());
        let mut seen = snapshot.clone();
        let steps = (0..400).take_while(|_| match pass.poll(&seen) {
            Step::Act(_) => {
                for change in pass.observe(outcome(&mut bytes)) {
                    seen.apply(change);
                }
                true
            }
            _ => false,
        });
        assert!(steps.count() < 400, "{key} does not end");
    }
}
