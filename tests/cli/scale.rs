//! A dump of a fleet: it is planned and played as a small one is.

use serde_json::{Value, json};

use super::run::{Folder, run};

const WORKSPACES: usize = 1_000;
const BINDINGS: usize = 10;

fn object(api_version: &str, kind: &str, cluster: &str, name: &str, spec: Value) -> Value {
    let annotations = json!({"kcp.io/cluster": cluster, "kcp.io/path": format!("root:{cluster}")});
    let metadata = json!({"name": name, "annotations": annotations});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

/// Ten exports, and in each of the workspaces a binding to each of them.
fn fleet() -> Value {
    let mut items = Vec::new();
    for export in 0..BINDINGS {
        let (group, schema) = (format!("g{export}.example"), format!("v1.things.g{export}.example"));
        let resource = json!({"group": group, "name": "things", "schema": schema, "storage": {"crd": {}}});
        let mut object_of =
            |api_version, kind, name: &str, spec| items.push(object(api_version, kind, "farm", name, spec));
        object_of("apis.kcp.io/v1alpha2", "APIExport", &format!("e{export}"), json!({"resources": [resource]}));
        let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
        let spec = json!({"group": group, "names": names, "scope": "Namespaced", "versions": [version]});
        object_of("apis.kcp.io/v1alpha1", "APIResourceSchema", &schema, spec);
    }
    for export in items.iter_mut().filter(|item| item["kind"] == "APIExport") {
        export["status"] = json!({"identityHash": export["metadata"]["name"]});
    }
    for workspace in 0..WORKSPACES {
        let cluster = format!("ws{workspace}");
        items.push(object("core.kcp.io/v1alpha1", "LogicalCluster", &cluster, "cluster", json!({})));
        for binding in 0..BINDINGS {
            let spec = json!({"reference": {"export": {"path": "root:farm", "name": format!("e{binding}")}}});
            items.push(object("apis.kcp.io/v1alpha2", "APIBinding", &cluster, &format!("b{binding}"), spec));
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

#[test]
fn ten_thousand_bindings() {
    let folder = Folder::new("fleet");
    let file = folder.write("fleet.json", &fleet().to_string());
    let last = |text: &str| text.lines().last().unwrap().to_owned();
    let plan = run(["plan", "-f", &file]);
    assert_eq!(last(&plan.out), "10000 bindings: 10000 with something to do, 0 with nothing to do");
    // Each binding begins, takes its lock and is bound, and the first of each export has a CRD made.
    let settled = run(["plan", "--settle", "-f", &file]);
    assert_eq!(
        last(&settled.out),
        "at rest after 30000 passes and 30010 effects: 10000 of 10000 bindings bound, 0 before"
    );
}
