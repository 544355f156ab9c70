//! What may not grow with what stands beside it: counted in allocations and bytes, which are the same on every machine.

#![allow(clippy::unwrap_used)]

use allocation_counter::{AllocationInfo, measure};
use apibinding::api::{Kind, Object};
use apibinding::pass::{Pass, Step};
use apibinding::sim::Builder;
use apibinding::snapshot::{Change, Layout, Snapshot};
use apibinding::wakeup::wakeup;

/// `each` bindings in each of the workspaces, all bound, and one object of a kind.
fn world(workspaces: usize, each: usize, kind: Kind) -> (Snapshot, Object) {
    let builder = Builder::new(1).layout(Layout::Single).crowded(false).bound(true);
    let mut snapshot = Snapshot::new(Layout::Single);
    snapshot.set_now(Builder::START);
    let mut sample = None;
    for object in builder.workspaces(workspaces).bindings(workspaces * each).build() {
        let object = Object::from_typed_json(&object.to_string()).unwrap();
        if object.kind() == kind {
            sample.get_or_insert(object.clone());
        }
        snapshot.apply(Change::put(object));
    }
    (snapshot, sample.unwrap())
}

/// The same object, one version later.
fn later(mut object: Object) -> Change {
    object.metadata_mut().resource_version = Some("1000000000".into());
    Change::put(object)
}

fn settled_pass(workspaces: usize, each: usize) -> AllocationInfo {
    let (snapshot, binding) = world(workspaces, each, Kind::ApiBinding);
    let key = binding.key();
    let mut pass = Pass::new(key);
    measure(|| assert!(matches!(pass.poll(&snapshot), Step::Done(_))))
}

#[test]
fn a_pass_with_nothing_to_do_allocates_nothing_whatever_stands_beside_it() {
    for (workspaces, each) in [(1, 1), (1, 10), (1, 100), (1, 1000), (1000, 1)] {
        assert_eq!(settled_pass(workspaces, each).count_total, 0, "{workspaces} workspaces of {each} bindings");
    }
}

#[test]
fn cloning_a_snapshot_allocates_nothing() {
    let (snapshot, _) = world(1000, 1, Kind::ApiBinding);
    assert_eq!(measure(|| drop(snapshot.clone())).count_total, 0);
}

/// Bytes allocated while a change of a binding is taken in and it is told whom it wakes.
fn taking_in(workspaces: usize, each: usize) -> u64 {
    let (mut snapshot, binding) = world(workspaces, each, Kind::ApiBinding);
    let change = later(binding);
    let bytes = measure(|| {
        let applied = snapshot.apply(change);
        assert_eq!(wakeup(&snapshot, &applied).len(), 1);
    });
    bytes.bytes_total
}

#[test]
fn a_change_of_a_binding_costs_the_same_in_any_workspace_and_any_fleet() {
    let alone = taking_in(1, 1);
    for (workspaces, each) in [(1, 10), (1, 1000), (1000, 1), (4000, 1)] {
        let bytes = taking_in(workspaces, each);
        assert!(bytes <= 2 * alone, "{workspaces} workspaces of {each}: {bytes} bytes, alone {alone}");
    }
}

/// The same while somebody else holds a clone, so that what changes has to be copied.
#[test]
fn what_is_copied_for_a_change_is_a_narrow_path() {
    let copied = |workspaces, each| {
        let (mut snapshot, binding) = world(workspaces, each, Kind::ApiBinding);
        let (change, held) = (later(binding), snapshot.clone());
        let bytes = measure(|| drop(snapshot.apply(change))).bytes_total;
        drop(held);
        bytes
    };
    let few = copied(100, 1);
    for (workspaces, each) in [(4000, 1), (1, 1000)] {
        let bytes = copied(workspaces, each);
        assert!(bytes <= 4 * few, "{workspaces} workspaces of {each}: {bytes} bytes, few {few}");
    }
}

#[test]
fn a_change_of_an_export_costs_what_it_wakes() {
    let waking = |workspaces: usize| {
        let (mut snapshot, mut export) = world(workspaces, 1, Kind::ApiExport);
        export.metadata_mut().uid = Some("another".into());
        let applied = snapshot.apply(later(export));
        let mut woken = 0;
        let bytes = measure(|| woken = wakeup(&snapshot, &applied).len()).bytes_total;
        (woken as u64, bytes)
    };
    let (few, bytes_of_few) = waking(1_000);
    let (many, bytes_of_many) = waking(8_000);
    assert_eq!((few, many), (10, 80), "there are a hundred exports");
    assert!(bytes_of_many <= 10 * bytes_of_few, "{bytes_of_many} bytes for {many} keys, {bytes_of_few} for {few}");
}

/// A lock annotation of a thousand bindings costs what its bytes cost.
#[test]
fn a_change_of_locks_costs_what_its_bytes_cost() {
    let taking_in = |each| {
        let (mut snapshot, home) = world(1, each, Kind::LogicalCluster);
        let text = serde_json::to_string(&home).unwrap().len() as u64;
        let change = later(home);
        (text, measure(|| drop(snapshot.apply(change))).bytes_total)
    };
    let (short, bytes_of_short) = taking_in(100);
    let (long, bytes_of_long) = taking_in(1000);
    assert!(long >= 9 * short, "{long} and {short} bytes of JSON");
    assert!(
        bytes_of_long * short <= 2 * bytes_of_short * long,
        "{bytes_of_long} for {long}, {bytes_of_short} for {short}"
    );
}
