//! `apibinding simulate`.

use crate::run::run;

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

/// Against people who edit locks by hand nothing is promised: some of these worlds show it, with the shortest
/// course of events, which shows it again.
#[test]
fn a_broken_law_is_told_with_the_shortest_trace() {
    let args = ["simulate", "--worlds", "40", "--faults", "vandals"];
    let played = run(args);
    assert_eq!(played.code, 2, "{}", played.out);
    let (_, told) = played.out.split_once("seed ").unwrap();
    let seed = told.split(':').next().unwrap();
    assert!(told.contains("law `"), "{told}");
    assert!(told.contains("the shortest that shows it, with "), "{told}");
    let again = run(["simulate", "--seed", seed, "--faults", "vandals", "-o", "json"]);
    assert_eq!(again.code, 2);
    let broken = &again.json()["worlds"][0]["broken"];
    assert!(broken["shortestTrace"].as_array().is_some_and(|lines| !lines.is_empty()), "{broken}");
    assert!(played.out.contains(broken["why"].as_str().unwrap()));
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
