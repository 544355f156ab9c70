//! `apibinding simulate`.

use crate::run::{Folder, run};

#[test]
fn worlds_of_seeds_hold_all_laws() {
    let played = run(["simulate", "--worlds", "8", "--seed", "11"]);
    assert_eq!(played.code, 0, "{}", played.out);
    assert!(played.out.starts_with("8 worlds and "), "{}", played.out);
    assert!(played.out.ends_with(" steps: all laws held, all came to rest\n"), "{}", played.out);
}

#[test]
fn the_same_seed_gives_the_same_to_the_byte() {
    let trace = |seed| run(["simulate", "--trace", "--seed", seed]).out;
    let first = trace("5");
    assert!(first.contains(" controller 0: starts\n") && first.contains(" user: "), "{first}");
    assert_eq!(first, trace("5"));
    assert_ne!(first, trace("6"));
}

#[test]
fn a_world_of_a_file_comes_to_rest() {
    let played = run(["simulate", "-f", "examples/world.yaml", "--faults", "none"]);
    assert_eq!(played.code, 0, "{}{}", played.out, played.err);
    assert!(played.out.contains("4 bindings"), "{}", played.out);
}

#[test]
fn data_tells_what_was_counted() {
    let played = run(["simulate", "--worlds", "2", "--no-laws", "--workspaces", "2", "--bindings", "9", "-o", "json"]);
    let worlds = &played.json()["worlds"];
    assert_eq!((&worlds[0]["seed"], &worlds[1]["seed"]), (&1.into(), &2.into()));
    assert!(worlds[0]["steps"].as_u64() > Some(50), "{worlds}");
    assert!(worlds[0]["faults"].as_object().is_some_and(|faults| !faults.is_empty()), "{worlds}");
}

/// A world that breaks a law from the start, and all that it takes for that.
#[test]
fn a_broken_law_is_told_with_the_smallest_world_and_the_shortest_trace() {
    let folder = Folder::new("broken");
    let binding = |name: &str| {
        format!(
            r#"{{"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
                "metadata": {{"name": "{name}", "annotations": {{"kcp.io/cluster": "meadow"}}}},
                "spec": {{"reference": {{"export": {{"path": "farm", "name": "birds"}}}}}},
                "status": {{"phase": "Bound", "boundResources": [{{"group": "farm.example", "resource": "geese",
                    "schema": {{"name": "geese", "UID": "uid-geese", "identityHash": "id"}}}}]}}}}"#
        )
    };
    let world = std::fs::read_to_string("examples/world.yaml").unwrap();
    let path = folder.write("world.yaml", &format!("{world}\n---\n{}\n---\n{}\n", binding("alder"), binding("birch")));
    let played = run(["simulate", "-f", &path]);
    assert_eq!(played.code, 2, "{}{}", played.out, played.err);
    let why = r#"law `exclusive` is broken: geese.farm.example in meadow is bound by {"alder", "birch"}"#;
    assert!(played.out.contains(why), "{}", played.out);
    assert!(
        played.out.contains("the shortest that shows it, with 2 objects, 0 deeds and faults none:\n"),
        "{}",
        played.out
    );
    assert!(played.out.ends_with("a law was broken in 1\n"), "{}", played.out);

    let data = run(["simulate", "-f", &path, "-o", "json"]);
    assert_eq!(data.code, 2);
    let broken = &data.json()["worlds"][0]["broken"];
    assert_eq!((&broken["law"], broken["shortestTrace"].as_array().unwrap().len()), (&"exclusive".into(), 1));
}

/// Against people who edit locks by hand nothing is promised; what came of it is counted.
#[test]
fn what_nobody_can_promise_is_counted() {
    let played = run(["simulate", "--seed", "23", "--faults", "vandals"]);
    assert_eq!(played.code, 0, "{}", played.out);
    assert!(played.out.contains("1 times two bindings came to list one resource"), "{}", played.out);
}

#[test]
fn a_fault_that_is_none_is_an_error_that_names_them() {
    let played = run(["simulate", "--faults", "crash,gremlins"]);
    assert_eq!(played.code, 1);
    assert!(
        played.err.contains("`gremlins` is no fault: say `all`, `none`, or some of request-lost"),
        "{}",
        played.err
    );
}
