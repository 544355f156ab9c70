//! That crowded worlds have everything that can get in the way of something else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{LAYOUTS, cluster_of, is, list, snapshot, text};
use crate::api::{ApiBinding, BindingKey, Kind, PATH_ANNOTATION};
use crate::sim::builder::{Builder, START};
use crate::snapshot::{Annotation, Layer, Layout, Lock};

/// The shapes that a world has, told from its objects.
fn shapes(builder: &Builder) -> BTreeSet<&'static str> {
    let objects: Vec<Value> = builder.build().collect();
    let snapshot = snapshot(builder.layout, &objects);
    let mut shapes = BTreeSet::new();
    let mut note = |is_so: bool, shape| {
        if is_so {
            shapes.insert(shape);
        }
    };
    let of = |kind| objects.iter().filter(move |object| is(object, kind));
    let mut offered: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for export in of(Kind::ApiExport) {
        let at = &export["metadata"]["annotations"][PATH_ANNOTATION];
        note(at.is_null(), "export without path");
        note(!at.is_null() && *at != format!("root:{}", cluster_of(export)), "export under another path");
        note(text(export, "/status/identityHash").is_empty(), "export without identity");
        note(list(export, "/spec/resources").next().is_none(), "export without resources");
        keys.insert((cluster_of(export), text(export, "/metadata/name")));
        for resource in list(export, "/spec/resources") {
            *offered.entry((text(resource, "/group"), text(resource, "/name"))).or_default() += 1;
            note(resource["storage"].get("crd").is_some(), "storage crd");
            note(resource["storage"].get("virtual").is_some(), "storage virtual");
            note(text(resource, "/group").is_empty(), "core group");
            let schema = snapshot.schema(&cluster_of(export).into(), text(resource, "/schema"));
            note(schema.is_none(), "schema missing");
        }
        for claim in list(export, "/spec/permissionClaims") {
            note(text(claim, "/identityHash").is_empty(), "claim without identity");
            note(!text(claim, "/identityHash").is_empty(), "claim with identity");
        }
    }
    note(offered.values().any(|count| *count > 1), "offered by several exports");
    for schema in of(Kind::ApiResourceSchema) {
        let strategy = text(schema, "/spec/conversion/strategy");
        let is_several = list(schema, "/spec/versions").count() > 1;
        note(is_several && strategy == "None", "converted by nobody");
        note(is_several && strategy == "Webhook", "converted by webhook");
        note(is_several && strategy.is_empty(), "conversion lacking");
        let client = schema.pointer("/spec/conversion/webhook/clientConfig");
        note(strategy == "Webhook" && client.is_none(), "client config lacking");
        note(client.is_some_and(|client| text(client, "/url").starts_with("http:")), "refused by the server");
        let raw = &schema["spec"]["versions"][0]["schema"];
        note(raw["required"].is_i64(), "no CRD can be made");
        note(raw.pointer("/properties/spec").is_some(), "refused for its types");
        note(text(schema, "/spec/nameValidation") == "PathSegmentName", "rich schema");
    }
    note(of(Kind::ApiConversion).next().is_some(), "conversion");
    for crd in of(Kind::Crd) {
        let is_bound = cluster_of(crd) == "system:bound-crds";
        note(is_bound, "bound CRD");
        note(!is_bound && text(crd, "/status/conditions/0/status") == "True", "own CRD");
        note(!is_bound && text(crd, "/status/conditions/0/status") == "False", "own CRD without its names");
    }
    let names: Vec<&str> = of(Kind::ApiBinding).map(|binding| text(binding, "/metadata/name")).collect();
    for binding in of(Kind::ApiBinding) {
        let binding: ApiBinding = serde_json::from_value(binding.clone()).unwrap();
        let key = binding.key();
        match &binding.spec.reference.export {
            None => note(true, "no reference"),
            Some(export) => {
                let path = export.path.as_str();
                note(path.is_empty(), "by nothing");
                note(path.starts_with("root:"), "by path");
                note(!path.is_empty() && !path.contains(':'), "by cluster name");
                let found = if path.is_empty() { key.cluster.as_str() } else { path.trim_start_matches("root:") };
                note(!keys.contains(&(found, export.name.as_str())), "export missing");
            }
        }
        for claim in &binding.spec.permission_claims {
            note(claim.is_accepted(), "claim accepted");
            note(!claim.is_accepted(), "claim rejected");
        }
        note(snapshot.logical_cluster(&key.cluster).is_none(), "LogicalCluster late");
        note(binding.status.phase.as_str().is_empty(), "new");
        note(binding.status.phase.as_str() == "Binding", "begun");
        note(binding.status.phase.as_str() == "Bound", "bound");
        let bound = &binding.status.bound_resources;
        note(bound.iter().any(|bound| snapshot.bound_crd(&bound.schema.uid).is_none()), "bound CRD missing");
    }
    let homes = snapshot
        .clusters()
        .into_iter()
        .filter_map(|cluster| Some((cluster.clone(), snapshot.logical_cluster(&cluster)?)));
    for (cluster, home) in homes {
        let own = if builder.layout == Layout::Split { &home.bindings } else { &home.legacy };
        note(matches!(own, Annotation::Missing), "own annotation missing");
        note(own.why().is_some(), "own annotation unreadable");
        note(home.crds.why().or(home.pending.why()).is_some(), "other annotation unreadable");
        let is_there = |lock: &Lock| snapshot.binding(&BindingKey::new(cluster.clone(), lock.name.clone())).is_some();
        for (resource, lock) in own.locks().into_iter().flat_map(|locks| locks.iter()) {
            if lock.is_of_binding() {
                note(!lock.uid.is_empty() && is_there(lock), "lock with uid");
                note(lock.uid.is_empty() && is_there(lock), "lock without uid");
                note(!is_there(lock) && names.contains(&lock.name.as_str()), "lock of a name that may come");
                note(!is_there(lock), "dead lock");
                note(lock.uid.ends_with("before"), "lock of a predecessor");
                let key = BindingKey::new(cluster.clone(), lock.name.clone());
                let binding = snapshot.binding(&key);
                note(binding.is_some_and(|binding| binding.status.bound(resource).is_some()), "lock of what is bound");
            }
            note(!lock.holds(), "lock of nobody");
        }
        note(home.legacy.locks().is_some_and(|locks| locks.iter().any(|(_, lock)| is_there(lock))), "legacy lock");
        let layers = [Layer::Crds, Layer::Pending, Layer::Legacy].map(|layer| match layer {
            Layer::Crds => &home.crds,
            Layer::Pending => &home.pending,
            _ => &home.legacy,
        });
        for (resource, lock) in layers.into_iter().filter_map(|layer| layer.locks()).flat_map(|locks| locks.iter()) {
            let is_crd_there = snapshot.crd(&cluster, &resource.crd_name()).is_some();
            note(lock.crd && is_crd_there, "CRD lock");
            note(lock.crd && !is_crd_there && lock.expiry.is_none(), "CRD lock without CRD and end");
            note(!is_crd_there && lock.end().is_some_and(|end| end < START), "CRD lock that is over");
            note(!is_crd_there && lock.end().is_some_and(|end| end > START), "CRD lock that soon is over");
        }
    }
    shapes
}

#[test]
fn crowded_worlds_have_everything() {
    const BOTH: [&str; 50] = [
        "export without path",
        "export under another path",
        "export without identity",
        "export without resources",
        "storage crd",
        "storage virtual",
        "core group",
        "schema missing",
        "claim without identity",
        "claim with identity",
        "offered by several exports",
        "converted by nobody",
        "converted by webhook",
        "conversion lacking",
        "client config lacking",
        "refused by the server",
        "no CRD can be made",
        "refused for its types",
        "rich schema",
        "conversion",
        "bound CRD",
        "own CRD",
        "own CRD without its names",
        "no reference",
        "by nothing",
        "by path",
        "by cluster name",
        "export missing",
        "claim accepted",
        "claim rejected",
        "LogicalCluster late",
        "new",
        "begun",
        "bound",
        "bound CRD missing",
        "own annotation missing",
        "own annotation unreadable",
        "lock without uid",
        "dead lock",
        "lock of a name that may come",
        "lock of what is bound",
        "lock of nobody",
        "legacy lock",
        "CRD lock",
        "CRD lock without CRD and end",
        "CRD lock that is over",
        "CRD lock that soon is over",
        "lock with uid",
        "lock of a predecessor",
        "other annotation unreadable",
    ];
    for layout in LAYOUTS {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        // Half as many show as much: all but the layers of locks is drawn alike.
        let seeds = if layout == Layout::Split { 800 } else { 400 };
        for seed in 0..seeds {
            for shape in shapes(&Builder::new(seed).layout(layout)) {
                *counts.entry(shape).or_default() += 1;
            }
        }
        let rare = |shape: &&&str| counts.get(**shape).is_none_or(|count| *count < 2);
        let missing: Vec<&&str> = BOTH.iter().filter(rare).collect();
        let split_only = layout == Layout::Single && missing == [&"other annotation unreadable"];
        assert!(missing.is_empty() || split_only, "{layout:?}: {missing:?} of {counts:?}");
    }
}
