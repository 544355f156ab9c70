//! The command line, run as people run it.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "cli/dump.rs"]
mod dump;
#[cfg(all(feature = "shell", feature = "sim"))]
#[path = "cli/live.rs"]
mod live;
#[path = "cli/notes.rs"]
mod notes;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/scale.rs"]
mod scale;
#[cfg(feature = "sim")]
#[path = "cli/simulate.rs"]
mod simulate;

use std::io::Read;
use std::process::Stdio;

use run::{Folder, Run, command, run, run_with_input};
use serde_json::Value;

const WORLD: &str = "examples/world.yaml";
const NOW: &str = "--now=2026-06-01T12:00:10Z";

fn world() -> String {
    std::fs::read_to_string(WORLD).unwrap()
}

#[test]
fn the_example_is_planned() {
    let plan = run(["plan", "-v", NOW, "-f", WORLD]);
    assert_eq!((plan.code, &*plan.err), (2, ""));
    insta::assert_snapshot!("plan", plan.out);
}

#[test]
fn the_example_comes_to_rest() {
    let settled = run(["plan", "--settle", NOW, "-f", WORLD]);
    assert_eq!((settled.code, &*settled.err), (2, ""));
    insta::assert_snapshot!("settle", settled.out);
}

#[test]
fn the_example_is_explained() {
    for (binding, code, told) in [
        ("root:meadow/poultry", 0, "bound"),
        ("meadow|dairy", 2, "v1.cheeses.dairy.example"),
        ("root:meadow|waterfowl", 2, "poultry"),
        ("meadow/orchard", 2, "v1.pears.orchard.example"),
    ] {
        let text = run(["explain", "-f", WORLD, binding]);
        assert_eq!((text.code, &*text.err), (code, ""), "{binding}");
        assert!(text.out.contains(told) && text.out.ends_with('\n'), "{}", text.out);
        for data in [run(["explain", "-f", WORLD, binding, "-o", "json"]).json(), yaml(["explain", binding])] {
            assert_eq!(data["binding"]["cluster"], "meadow");
        }
    }
}

/// What a command prints about the example as YAML.
fn yaml<const N: usize>(args: [&str; N]) -> Value {
    let shown = run(args.into_iter().chain(["-f", WORLD, "-o", "yaml"]));
    serde_saphyr::from_str(&shown.out).unwrap_or_else(|error| panic!("{error}: {}", shown.out))
}

#[test]
fn nothing_to_do_is_no_error() {
    let plan = run(["plan", "-f", WORLD, "meadow/poultry"]);
    assert_eq!((plan.code, &*plan.out), (0, "1 binding: 0 with something to do, 1 with nothing to do\n"));
    let settled = run(["plan", "--settle", "-f", WORLD, "meadow/poultry"]);
    assert_eq!(
        (settled.code, &*settled.out),
        (0, "at rest after 7 passes and 0 effects: 1 of 1 binding bound, 1 before\n")
    );
}

#[test]
fn a_plan_as_data() {
    let plan = run(["plan", NOW, "-f", WORLD, "-o", "json", "meadow/dairy", "meadow/poultry"]).json();
    assert_eq!(plan, yaml(["plan", NOW, "meadow/dairy", "meadow/poultry"]));
    let [dairy, poultry] = plan["bindings"].as_array().unwrap().as_slice() else { panic!("{plan}") };
    assert_eq!(dairy["binding"], serde_json::json!({"cluster": "meadow", "name": "dairy"}));
    assert_eq!(dairy["phase"], serde_json::json!({"before": "Binding", "after": "Binding"}));
    let effects: Vec<_> =
        dairy["effects"].as_array().unwrap().iter().flat_map(|e| e.as_object().unwrap().keys()).collect();
    assert_eq!(effects, ["patchLogicalCluster", "createCrd", "patchApiBindingStatus"]);
    assert_eq!(dairy["effects"][0]["patchLogicalCluster"]["body"]["kind"], "LogicalCluster");
    assert_eq!(dairy["status"]["before"], serde_json::json!({"phase": "Binding"}));
    assert_eq!(dairy["status"]["after"]["conditions"][0]["type"], "Ready");
    assert_eq!(dairy["retry"], "forget");
    assert_eq!(poultry["effects"], serde_json::json!([]));

    let settled = run(["plan", "--settle", NOW, "-f", WORLD, "-o", "json"]).json();
    assert_eq!(settled, yaml(["plan", "--settle", NOW]));
    let steps: Vec<_> = settled["steps"].as_array().unwrap().iter().map(|step| &step["binding"]["name"]).collect();
    assert_eq!(steps, ["dairy", "dairy", "dairy", "orchard", "waterfowl"]);
    assert_eq!(settled["bindings"][0]["phase"], serde_json::json!({"before": "Binding", "after": "Bound"}));
    assert_eq!(settled["bindings"][0]["effects"].as_array().unwrap().len(), 3);
}

#[test]
fn crds_may_stay_without_being_established() {
    let settled = run(["plan", "--settle", "--establish=false", "-f", WORLD, "-o", "json", "meadow/dairy"]).json();
    let status = &settled["bindings"][0]["status"]["after"];
    assert_eq!(status["phase"], "Binding");
    assert_eq!(status["conditions"][0]["reason"], "WaitingForEstablished");
    assert_eq!(run(["plan", "--establish=false", "-f", WORLD]).code, 1, "only with --settle");
}

#[test]
fn input_comes_in_all_forms() {
    let expect = run(["plan", "-v", NOW, "-f", WORLD]).out;
    let folder = Folder::new("forms");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&world()).unwrap();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
    assert_eq!(run_with_input(["plan", "-v", NOW, "-f", "-"], &world()).out, expect, "standard input");
    assert_eq!(run_with_input(["plan", "-v", NOW, "-f", "-"], &list).out, expect, "a List");
    let mut args: Vec<String> = ["plan", "-v", NOW, "-f"].map(Into::into).into();
    for (index, document) in documents.iter().rev().enumerate() {
        args.push(folder.write(&format!("{index:02}.json"), &document.to_string()));
    }
    assert_eq!(run(&args).out, expect, "files, backwards");
    assert_eq!(run(["plan", "-v", NOW, "-f", &folder.path()]).out, expect, "a folder");
    assert_eq!(run(["plan", "-v", NOW, "-f", WORLD, "-f", &folder.path()]).out, expect, "the same twice");
}

#[test]
fn an_error_in_the_input_says_where() {
    let wrong = world().replace("export: {path: root:farm, name: waterfowl}", "export: {path: root:farm, name: 5}");
    let folder = Folder::new("wrong");
    let file = folder.write("wrong.yaml", &wrong);
    let plan = run(["plan", "-f", &file]);
    assert_eq!((plan.code, &*plan.out), (1, ""));
    assert_eq!(
        plan.err,
        format!(
            "error: {file}, document 10: APIBinding meadow|waterfowl: spec.reference.export.name: invalid type: \
             integer `5`, expected a string: put it in quotes\n"
        )
    );
    for (input, told) in [
        ("", "standard input holds no object"),
        ("{\"kind\": ", "standard input, line 1, column 9: not valid JSON"),
        ("kind: A\nkind: B\n", "standard input, line 2, column 1: not valid YAML: duplicate mapping key `kind`"),
        ("kind: LogicalCluster\napiVersion: core.kcp.io/v1alpha1\nmetadata: {name: x}", "metadata.name: every"),
        ("kind: APIBinding\napiVersion: apis.kcp.io/v1alpha2\nmetadata: {}", "metadata.name: there is none"),
    ] {
        let plan = run_with_input(["plan", "-f", "-"], input);
        assert_eq!((plan.code, &*plan.out), (1, ""));
        assert!(plan.err.contains(told), "{}", plan.err);
    }
}

#[test]
fn an_object_may_be_given_twice_only_if_it_is_the_same() {
    let folder = Folder::new("twice");
    let other = world().split("---\n").find(|object| object.contains("uid: dairy-1")).unwrap().replace("dairy-1", "x");
    let other = folder.write("other.yaml", &other);
    let plan = run(["plan", "-f", WORLD, &other]);
    assert_eq!(plan.code, 1);
    let places = format!("{WORLD}, document 9, and {other}, document 1");
    assert!(
        plan.err.starts_with("error: APIBinding meadow|dairy is given twice, with different content: "),
        "{}",
        plan.err
    );
    assert!(plan.err.contains(&places), "{}", plan.err);
}

#[test]
fn usage() {
    for wrong in [
        &[][..],
        &["plan"],
        &["plan", "--such"],
        &["plan", "-f", WORLD, "--now", "tomorrow"],
        &["plan", "-f", WORLD, "-o", "xml"],
        &["explain", "-f", WORLD],
        &["explain", "-f", WORLD, "meadow/dairy", "meadow/poultry"],
        &["plan", "-f", "no/such/file.yaml"],
    ] {
        let wrong = run(wrong.iter().copied());
        assert_eq!((wrong.code, &*wrong.out), (1, ""), "{}", wrong.err);
        assert!(!wrong.err.is_empty());
    }
    for (asked, told) in
        [(&["--help"][..], "Exit status"), (&["plan", "--help"], "Examples:"), (&["--version"], "apibinding 0.")]
    {
        let asked = run(asked.iter().copied());
        assert_eq!((asked.code, &*asked.err), (0, ""));
        assert!(asked.out.contains(told), "{}", asked.out);
    }
}

#[test]
fn a_binding_that_is_not_there_has_near_ones() {
    for (asked, near) in [
        ("meadow/dary", "meadow|dairy"),
        ("root:meadow/dary", "root:meadow|dairy"),
        ("elsewhere|poultry", "meadow|poultry"),
        ("root:nowhere/zzz", "none of the 4"),
    ] {
        let plan = run(["plan", "-f", WORLD, asked]);
        assert_eq!((plan.code, &*plan.out), (1, ""));
        assert!(
            plan.err.contains(&format!("there is no binding `{asked}`: ")) && plan.err.contains(near),
            "{}",
            plan.err
        );
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child =
        command(["plan", "-f", WORLD, "-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*told), (Some(2), ""));
}

#[test]
fn colours_are_for_those_who_want_them() {
    let coloured = |settings: &[(&str, &str)]| {
        let output = command(["plan", "-f", WORLD]).envs(settings.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains('\x1b')
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

const HOME: &str = "apiVersion: core.kcp.io/v1alpha1\nkind: LogicalCluster\nmetadata:\n  name: cluster\n  annotations:\n    \
                    kcp.io/cluster: pond\n    internal.apis.kcp.io/resource-bindings: '{}'\n";

#[test]
fn the_layout_of_locks_is_told_by_the_input() {
    let geese = |cluster: &str| {
        format!(
            "apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata:\n  name: geese\n  annotations: \
             {{kcp.io/cluster: {cluster}}}\nspec: {{reference: {{export: {{path: root:farm, name: poultry}}}}}}\n\
             status: {{phase: Binding}}\n"
        )
    };
    let manager = |args: &[&str], input: &str| {
        let plan = run_with_input(["plan", "-o", "json", "-f", "-"].iter().chain(args).copied(), input).json();
        let bindings = plan["bindings"].as_array().unwrap().iter();
        let locks = bindings.filter_map(|b| b["effects"][0]["patchLogicalCluster"]["fieldManager"].as_str());
        locks.map(str::to_owned).collect::<Vec<_>>()
    };
    let farm = world().replace("internal.apis.kcp.io/locks-bindings", "example.test/no-locks");
    let single = format!("{farm}\n---\n{HOME}---\n{}", geese("pond"));
    assert_eq!(manager(&["pond/geese"], &single), ["apibinding-reconciler-locks"]);
    assert_eq!(manager(&["--layout=split", "pond/geese"], &single), ["kcp-apibinding"]);
    assert_eq!(manager(&["meadow/dairy"], &world()), ["kcp-apibinding"]);
    let left_behind =
        HOME.replace("resource-bindings: '{}'", "resource-bindings: '{}'\n    internal.apis.kcp.io/locks-crds: '{}'");
    let moved = format!("{}\n---\n{left_behind}---\n{}", world(), geese("pond"));
    assert_eq!(manager(&["pond/geese"], &moved), ["kcp-apibinding"], "legacy beside split");

    let both = format!("{}\n---\n{HOME}", world());
    let plan = run_with_input(["plan", "-f", "-"], &both);
    assert_eq!((plan.code, &*plan.out), (1, ""));
    assert!(plan.err.contains("meadow is split, but pond is single"), "{}", plan.err);
    assert_eq!(run_with_input(["plan", "--layout=single", "-f", "-"], &both).code, 2);
}

#[test]
fn locks_that_a_gone_binding_left_are_released() {
    let left = world().replace(r#""u":"poultry-1"}}"#, r#""u":"poultry-1"},"eels.pond.example":{"n":"eels"}}"#);
    let plan = run_with_input(["plan", "-f", "-", "meadow/eels"], &left);
    assert_eq!(plan.code, 2, "{}", plan.err);
    let expect = "\
meadow|eels (root:meadow): gone, but it left locks behind
  ask whether APIBinding meadow|eels exists
  apply locks to LogicalCluster meadow|cluster as kcp-apibinding, at resourceVersion 11
    - eels.pond.example {\"n\":\"eels\"}

1 binding: 1 with something to do, 0 with nothing to do
";
    assert_eq!(plan.out, expect);
    // Played in order, whoever comes first takes them out.
    let settled = run_with_input(["plan", "--settle", "-f", "-"], &left);
    assert!(settled.out.contains("    - eels.pond.example {\"n\":\"eels\"}\n"), "{}", settled.out);
}

#[test]
fn a_lock_that_ends_is_looked_at_again() {
    let pending = "\n    internal.apis.kcp.io/locks-pending: '{\"cheeses.dairy.example\":{\"c\":true,\"e\":\"2026-06-01T12:00:00Z\"}}'";
    let input = world()
        .replace("kcp.io/path: root:meadow\n    internal", &format!("kcp.io/path: root:meadow{pending}\n    internal"));
    let later = "  look again just after 2026-06-01T12:01:15Z\n";
    let plan = run_with_input(["plan", NOW, "-f", "-", "meadow/dairy"], &input);
    assert!(plan.out.contains(later), "{}", plan.out);
    let settled = run_with_input(["plan", "--settle", NOW, "-f", "-", "meadow/dairy"], &input);
    assert!(settled.out.contains(later) && settled.out.contains("0 of 1 binding bound"), "{}", settled.out);
    let after = run_with_input(["plan", "--settle", "--now=2026-06-01T12:01:16Z", "-f", "-", "meadow/dairy"], &input);
    assert!(after.out.contains("1 of 1 binding bound"), "{}", after.out);
}

#[test]
fn what_is_left_out_or_missing_is_told() {
    let others = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".repeat(2);
    let plan = run_with_input(["plan", "-f", "-"], &format!("{}\n{others}", world()));
    assert_eq!(plan.code, 2);
    assert!(plan.err.starts_with("note: 2 objects are of kinds that this controller does not read"), "{}", plan.err);

    let homeless = world().replace("kind: LogicalCluster", "kind: ConfigMap");
    let plan = run_with_input(["plan", "-f", "-", "meadow/dairy"], &homeless);
    assert!(
        plan.err.contains("note: no LogicalCluster is given for 1 logical cluster with bindings (meadow)"),
        "{}",
        plan.err
    );
    let one = "note: 1 object is of a kind that this controller does not read, and is left out: ConfigMap 1\n";
    assert!(plan.err.starts_with(one), "{}", plan.err);
    assert!(plan.out.contains("LogicalClusterNotFound") && !plan.out.contains("create"), "{}", plan.out);

    let plan: Run = run(["plan", "-f", WORLD, "--global", WORLD]);
    assert!(
        plan.err.starts_with("note: 6 objects are of kinds that this controller does not read from the cache"),
        "{}",
        plan.err
    );
}
