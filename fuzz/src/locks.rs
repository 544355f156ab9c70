//! Lock annotations as bytes.

use apibinding::api::{BindingKey, Kind, Object};
use apibinding::effect::Effect;
use apibinding::sim::laws::{Model, Reads, Server, confined, run_with};
use apibinding::snapshot::{Annotation, Change, Layer, Layout};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::constant(1_780_315_200, 0);

fn object(kind: Kind, name: &str, cluster: &str, mut json: Value) -> Object {
    let metadata = json!({
        "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "annotations": {"kcp.io/cluster": cluster},
    });
    let given = json["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    json["metadata"] = metadata;
    json["metadata"]["annotations"].as_object_mut().unwrap().extend(given);
    Object::from_json(kind, &json.to_string()).unwrap()
}

/// A workspace in which two bindings want geese, and this text stands in each layer in turn.
fn world(layout: Layout, layer: Layer, text: &str) -> Model {
    let mut model = Model::new(layout, NOW);
    let names = json!({"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
    let schema =
        json!({"spec": {"group": "farm.example", "names": names, "scope": "Namespaced", "versions": [version]}});
    let entry = json!({"name": "geese", "group": "farm.example", "schema": "geese", "storage": {"crd": {}}});
    let export = json!({"spec": {"resources": [entry]}, "status": {"identityHash": "id"}});
    let binding = json!({
        "spec": {"reference": {"export": {"path": "farm", "name": "birds"}}}, "status": {"phase": "Binding"},
    });
    let home = json!({"metadata": {"annotations": {layer.annotation(): text}}});
    for object in [
        object(Kind::ApiResourceSchema, "geese", "farm", schema),
        object(Kind::ApiExport, "birds", "farm", export),
        object(Kind::ApiBinding, "alder", "meadow", binding.clone()),
        object(Kind::ApiBinding, "birch", "meadow", binding),
        object(Kind::LogicalCluster, "cluster", "meadow", home),
    ] {
        model.apply(&Change::put(object));
    }
    model
}

/// Whatever stands in an annotation, a pass over it ends and is confined, and what it writes is read again as it
/// was meant.
pub fn locks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let layers = Layer::ALL.map(|layer| (Layout::Split, layer));
    for (layout, layer) in layers.into_iter().chain([(Layout::Single, Layer::Legacy)]) {
        let model = world(layout, layer, text);
        let mut snapshot = model.snapshot();
        let home = snapshot.logical_cluster(&"meadow".into()).unwrap().clone();
        if let Annotation::Locks(locks) = home.layer(layer) {
            let again = home_with(layer, &locks.to_text());
            assert!(matches!(again.layer(layer), Annotation::Locks(again) if again.to_text() == locks.to_text()));
        }
        let mut server = Server::new(&model, Reads::Expected);
        for name in ["alder", "birch", "yew"] {
            let key = BindingKey::new("meadow", name);
            let course = run_with(&mut snapshot, &mut server, &key, &[], |seen, _, effect| {
                let lives = |lock: &apibinding::snapshot::Lock| {
                    let there = seen.binding(&BindingKey::new("meadow", lock.name.clone()));
                    there.is_some_and(|there| lock.uid.is_empty() || lock.uid == there.meta.uid)
                };
                confined(&key, seen, effect, lives, |_| false)
            });
            let course = course.unwrap_or_else(|why| panic!("{layout:?}, {layer:?}: {why}"));
            for effect in course.effects() {
                let Effect::PatchLogicalCluster(patch) = effect else { continue };
                let annotations = patch.body.to_value()["metadata"]["annotations"].clone();
                let own = if layout == Layout::Split { Layer::Bindings } else { Layer::Legacy };
                let text = annotations[own.annotation()].as_str().unwrap().to_owned();
                let Annotation::Locks(read) = home_with(own, &text).layer(own).clone() else {
                    panic!("what is written cannot be read: {text}");
                };
                assert_eq!(read.to_text(), text);
            }
        }
    }
}

fn home_with(layer: Layer, text: &str) -> apibinding::snapshot::Home {
    let snapshot = world(Layout::Split, layer, text).snapshot();
    snapshot.logical_cluster(&"meadow".into()).unwrap().clone()
}
