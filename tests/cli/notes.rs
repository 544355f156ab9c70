//! What is told of an input besides the answer: on stderr, so that the answer stays as it is.

use serde_json::{Value, json};

use super::run::{run, run_with_input};
use super::world;

/// What a plan of this input says on stderr.
fn notes(input: &str) -> String {
    run_with_input(["plan", "-f", "-"], input).err
}

fn binding(more: &str) -> String {
    format!("apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\n{more}\n")
}

#[test]
fn unknown_fields_are_told_with_what_was_meant() {
    let input = world()
        .replacen("status:", "statsu:", 1)
        .replacen("export: {path: root:farm, name: waterfowl}", "exprot: {path: root:farm, name: waterfowl}", 1)
        .replacen("{plural: geese,", "{plurals: geese,", 1);
    let at = "note: standard input, document ";
    let expect = [
        format!("{at}1: APIExport farm|poultry: `statsu` is not known here, and is ignored: did you mean `status`?\n"),
        format!(
            "{at}2: APIResourceSchema farm|v1.geese.farm.example: `spec.names.plurals` is not known here, and is \
             ignored: did you mean `plural`?\n"
        ),
        format!(
            "{at}10: APIBinding meadow|waterfowl: `spec.reference.exprot` is not known here, and is ignored: did you \
             mean `export`?\n"
        ),
    ];
    assert_eq!(notes(&input), expect.concat());
}

#[test]
fn many_unknown_fields_are_counted() {
    let list: Vec<Value> = (0..8)
        .map(|number| {
            let metadata = json!({"name": format!("b{number}"), "annotations": {"kcp.io/cluster": "meadow"}});
            json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": metadata, "colour": 1})
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": list});
    let told = notes(&format!("{}\n---\n{list}", world()));
    assert_eq!(told.lines().count(), 6, "{told}");
    assert!(told.contains(", items[4]: APIBinding meadow|b4: `colour` is not known here, and is ignored\n"), "{told}");
    assert!(told.ends_with("note: and 3 more unknown fields\n"), "{told}");
}

#[test]
fn an_object_without_its_cluster_is_told() {
    let fish = binding("metadata: {name: fish}\nannotations: {kcp.io/cluster: meadow}");
    let told = notes(&format!("{}\n---\n{fish}", world()));
    assert!(told.contains("`annotations` is not known here, and is ignored: did you mean `metadata.annotations`?"));
    assert!(
        told.ends_with(
            "note: APIBinding fish (standard input, document 13) has no annotation kcp.io/cluster: it is in no \
             logical cluster\n"
        ),
        "no other note, least of all of a logical cluster without a name: {told}"
    );

    let many: String =
        (0..7).map(|number| format!("---\n{}", binding(&format!("metadata: {{name: b{number}}}")))).collect();
    let told = notes(&format!("{}\n{many}", world()));
    assert!(told.ends_with("note: and 2 more objects without annotation kcp.io/cluster\n"), "{told}");
    assert_eq!(told.lines().count(), 6, "{told}");
}

#[test]
fn an_answer_of_a_server_is_no_list() {
    let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "apibindings.apis.kcp.io is forbidden", "reason": "Forbidden", "code": 403});
    let plan = run_with_input(["plan", "-f", "-"], &format!("{status}{status}"));
    assert_eq!((plan.code, &*plan.out), (1, ""));
    let told = "error: standard input, document 1: this is no object, but a server's Status 403: \
                apibindings.apis.kcp.io is forbidden: ask the server again, as `apibinding --help` shows (curl without \
                -f saves such an answer as if it were a list)\n";
    assert_eq!(plan.err, told);
    let bare = notes("apiVersion: v1\nkind: Status");
    assert!(bare.contains("a server's Status: it does not say why: ask"), "{bare}");
    assert!(!notes("apiVersion: example.test/v1\nkind: Status").contains("error"), "another's Status");
}

#[test]
fn a_list_that_goes_on_is_told() {
    let page = |next: &str, version: &str| {
        let metadata = json!({"continue": next, "resourceVersion": version});
        json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBindingList", "metadata": metadata, "items": []})
    };
    let told = |pages: &[Value]| {
        let pages: String = pages.iter().map(|page| format!("\n---\n{page}")).collect();
        notes(&format!("{}{pages}", world()))
    };
    let note =
        "this APIBindingList is not whole: its metadata.continue says that there is a next page, which is missing";
    assert_eq!(told(&[page("a", "7")]), format!("note: standard input, document 13: {note}\n"));
    assert_eq!(told(&[page("a", "7"), page("b", "7")]), format!("note: standard input, document 14: {note}\n"));
    assert_eq!(told(&[page("a", "7"), page("", "8")]), format!("note: standard input, document 13: {note}\n"));
    assert_eq!(told(&[page("a", "7"), page("b", "7"), page("", "7")]), "", "all pages are there");
}

#[test]
fn kinds_that_are_not_there_at_all_are_told() {
    let without = |kind: &str| {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&world()).unwrap();
        let objects: Vec<_> = objects.into_iter().filter(|object| object["kind"] != kind).collect();
        notes(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
    };
    for kind in ["APIExport", "APIResourceSchema"] {
        let note = format!("note: no {kind} is given, though there are bindings: nothing new can be bound\n");
        assert_eq!(without(kind), note);
    }
    assert_eq!(without("APIBinding"), "note: no APIBindings in the input\n");
}

#[test]
fn a_layout_that_nothing_tells_is_told() {
    let bare = world().replace("internal.apis.kcp.io/locks-bindings", "example.test/no-locks");
    let note = "note: no LogicalCluster has an annotation of locks to tell their layout, so it is taken to be split: \
                for a kcp release so far, say --layout single\n";
    assert_eq!(notes(&bare), note);
    assert_eq!(run_with_input(["plan", "-f", "-", "--layout", "single"], &bare).err, "");
    let help = run(["plan", "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("else split") && help.contains("of both layouts in one input are an error"), "{help}");
    assert!(help.contains("The current time (RFC 3339) [default: the system's clock]"), "{help}");
}

#[test]
fn what_was_refused_before_is_told() {
    let message = "APIResourceSchema farm|v1.cheeses.dairy.example is invalid: no\nway";
    let input = |message: &str| {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&world()).unwrap();
        let dairy = objects.iter_mut().find(|object| object["metadata"]["uid"] == "dairy-1").unwrap();
        let reason = "APIResourceSchemaInvalid";
        let condition = json!({"type": "BindingUpToDate", "status": "False", "reason": reason, "message": message});
        dairy["status"]["conditions"] = json!([condition]);
        json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
    };
    let line = "was refused before: APIResourceSchema farm|v1.cheeses.dairy.example is invalid: no way\n";
    let effect = format!("APIResourceSchema farm|v1.cheeses.dairy.example\n    {line}  apply status");
    let plan = run_with_input(["plan", "-f", "-", "meadow/dairy"], &input(message)).out;
    assert!(plan.contains(&effect) && plan.matches("refused").count() == 1, "{plan}");
    let settled = run_with_input(["plan", "--settle", "-f", "-"], &input(message)).out;
    assert!(settled.contains(&effect), "{settled}");
    assert!(settled.contains(&format!("meadow|dairy (root:meadow): Binding -> Bound\n  {line}")), "{settled}");

    let other = input("APIResourceSchema farm|v2.cheeses.dairy.example is invalid: no way");
    let plan = run_with_input(["plan", "-f", "-", "meadow/dairy"], &other).out;
    assert!(!plan.contains("refused before"), "another schema was: {plan}");
}

#[test]
fn another_version_is_told_to_both_who_dump_and_who_write() {
    let told = notes("apiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata: {name: a}");
    let cure = "with `kubectl get apibindings.v1alpha2.apis.kcp.io -o yaml`, or, in a file written by hand, write \
                apiVersion: apis.kcp.io/v1alpha2\n";
    assert!(told.ends_with(cure), "{told}");
}
