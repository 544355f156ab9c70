//! What there is: what clients ask a server before they ask for anything else.

use serde_json::{Value, json};

use super::ask::{Ask, Place};
use super::refusal;
use super::reply::Reply;
use crate::api::Kind;
use crate::snapshot::Origin;

/// A resource that is served.
struct Resource {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    is_namespaced: bool,
    has_status: bool,
}

fn resources() -> impl Iterator<Item = Resource> {
    let kinds = Kind::ALL.into_iter().map(|kind| Resource {
        group: kind.group(),
        version: kind.api_version().split_once('/').map_or("", |(_, version)| version),
        plural: kind.plural(),
        kind: kind.as_str(),
        is_namespaced: false,
        has_status: !matches!(kind, Kind::ApiResourceSchema | Kind::ApiConversion),
    });
    let others = [("coordination.k8s.io", "leases", "Lease", true), ("", "namespaces", "Namespace", false)];
    let others = others.into_iter().map(|(group, plural, kind, is_namespaced)| Resource {
        group,
        version: "v1",
        plural,
        kind,
        is_namespaced,
        has_status: false,
    });
    kinds.chain(others)
}

/// Answers whatever concerns no object.
pub(super) fn reply(ask: &Ask) -> Reply {
    if ask.verb != "get" {
        return refusal::not_allowed();
    }
    match ask.place {
        Place::Version => Reply::Json(json!({
            "major": "1",
            "minor": "34",
            "gitVersion": "v1.34.0+simulated-kcp",
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "",
            "goVersion": "",
            "compiler": "",
            "platform": "",
        })),
        Place::Health => Reply::Text(200, "ok".into()),
        Place::Api => Reply::Json(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        Place::Groups => Reply::Json(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups().iter().map(|group| of_group(group, false)).collect::<Vec<_>>(),
        })),
        Place::Group if groups().contains(&&*ask.group) => Reply::Json(of_group(&ask.group, true)),
        Place::Resources => of_version(ask),
        _ => refusal::nowhere(),
    }
}

fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = resources().map(|resource| resource.group).filter(|group| !group.is_empty()).collect();
    groups.dedup();
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn of_group(group: &str, says_what_it_is: bool) -> Value {
    let mut versions: Vec<&str> =
        resources().filter(|resource| resource.group == group).map(|resource| resource.version).collect();
    // The newest first, which is the one that clients prefer.
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.dedup();
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let mut it = json!({"name": group, "versions": versions, "preferredVersion": versions.first()});
    if let (true, Some(it)) = (says_what_it_is, it.as_object_mut()) {
        it.insert("kind".into(), json!("APIGroup"));
        it.insert("apiVersion".into(), json!("v1"));
    }
    it
}

fn of_version(ask: &Ask) -> Reply {
    let mut found = Vec::new();
    for resource in resources() {
        if (resource.group, resource.version) != (&*ask.group, &*ask.version) {
            continue;
        }
        let is_cached = ask.origin == Origin::Global;
        if is_cached
            && (resource.is_namespaced || resource.kind == Kind::ApiBinding.as_str() || resource.group.is_empty())
        {
            continue;
        }
        let verbs: &[&str] = match (is_cached, resource.plural) {
            (true, _) => &["get", "list", "watch"],
            (false, "leases" | "namespaces") => &["create", "delete", "get", "list", "patch", "update"],
            _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        };
        found.push(json!({
            "name": resource.plural,
            "singularName": resource.kind.to_lowercase(),
            "namespaced": resource.is_namespaced,
            "kind": resource.kind,
            "verbs": verbs,
            "shortNames": short_names(resource.plural),
        }));
        if resource.has_status && !is_cached {
            found.push(json!({
                "name": format!("{}/status", resource.plural),
                "singularName": "",
                "namespaced": resource.is_namespaced,
                "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    if found.is_empty() {
        return refusal::nowhere();
    }
    let version = if ask.group.is_empty() { ask.version.to_string() } else { format!("{}/{}", ask.group, ask.version) };
    Reply::Json(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": found,
    }))
}

fn short_names(plural: &str) -> &'static [&'static str] {
    match plural {
        "customresourcedefinitions" => &["crd", "crds"],
        "namespaces" => &["ns"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[track_caller]
    fn get(path: &str) -> Option<Value> {
        match reply(&Ask::of(&Method::GET, &path.parse().unwrap())) {
            Reply::Json(json) => Some(json),
            _ => None,
        }
    }

    #[test]
    fn every_group_leads_to_its_resources() {
        let groups = get("/clusters/root/apis").unwrap();
        let mut found = 0;
        for group in groups["groups"].as_array().unwrap() {
            let name = group["name"].as_str().unwrap();
            assert_eq!(get(&format!("/clusters/root/apis/{name}")).unwrap()["versions"], group["versions"]);
            for version in group["versions"].as_array().unwrap() {
                let path = format!("/clusters/root/apis/{}", version["groupVersion"].as_str().unwrap());
                found += get(&path).unwrap()["resources"].as_array().unwrap().len();
            }
        }
        assert_eq!(found, 11, "seven kinds, four of which have a status");
        assert_eq!(get("/clusters/root/api/v1").unwrap()["resources"][0]["name"], "namespaces");
        assert_eq!(get("/clusters/root/apis/no.such.group"), None);
        assert_eq!(get("/clusters/root/apis/apis.kcp.io/v9"), None);
    }
}
