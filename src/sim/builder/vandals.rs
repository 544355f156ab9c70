//! What nobody should do: locks and status edited by hand.

use serde_json::{Map, Value, json};

use super::deeds::{Drawing, Sort};
use super::locks::{UNREADABLE, own_layer};
use super::pool::BINDINGS;
use crate::api::Kind;
use crate::sim::Request;
use crate::snapshot::{Layer, Layout};

pub(super) const VANDALS: [(u64, Sort); 3] = [(5, edit_locks), (3, spoil_locks), (4, edit_status)];

fn write_locks(it: &mut Drawing, text: Value) -> Option<()> {
    let home = it.chance.one_of(it.plan.homes.get(..it.plan.consumers)?)?;
    let own = own_layer(it.plan.layout);
    let layer = match it.plan.layout {
        Layout::Split if it.chance.permille(400) => *it.chance.one_of(&Layer::ALL)?,
        _ => own,
    };
    let patch = json!({"metadata": {"annotations": {layer.annotation(): text}}});
    let merge = Request::merge(Kind::LogicalCluster, home.cluster.as_str(), "cluster", patch);
    it.push(merge);
    Some(())
}

/// Locks given to others, whoever had them.
fn edit_locks(it: &mut Drawing) -> Option<()> {
    let mut locks = Map::new();
    for resource in &it.plan.resources {
        let holder = *it.chance.one_of(&BINDINGS)?;
        match it.chance.below(4) {
            0 => drop(locks.insert(resource.key().as_str().into(), json!({"n": holder}))),
            1 if it.chance.permille(300) => drop(locks.insert(resource.key().as_str().into(), json!({"c": true}))),
            _ => {}
        }
    }
    write_locks(it, json!(Value::Object(locks).to_string()))
}

/// Locks taken away, or made unreadable.
fn spoil_locks(it: &mut Drawing) -> Option<()> {
    let text = match it.chance.below(3) {
        0 => Value::Null,
        1 => json!("{}"),
        _ => json!(it.chance.one_of(&UNREADABLE)?),
    };
    write_locks(it, text)
}

fn edit_status(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    let resource = it.chance.one_of(&it.plan.resources)?;
    let status = match it.chance.below(5) {
        0 => json!({"boundResources": null}),
        1 => json!({"phase": *it.chance.one_of(&["", "Binding", "Bound"])?}),
        2 => json!({"conditions": null}),
        3 => json!({"boundResources": [{
            "group": resource.group,
            "resource": resource.plural,
            "schema": {"name": "by-hand", "UID": "by-hand", "identityHash": "by-hand"},
        }]}),
        _ => Value::Null,
    };
    let merge = it.merge_at(at, json!({"status": status}))?;
    it.push(merge.of_status());
    Some(())
}
