//! Requests for objects of the six kinds: what the simulated server is asked, and what is made of its answer.

use serde_json::Value;

use super::ask::Ask;
use super::call::{Call, Doing};
use super::house::House;
use super::json_patch;
use super::refusal;
use super::reply::{Body, Reply};
use crate::api::{BindingKey, ClusterName, Kind};
use crate::sim::{Answer, Request, Verb};
use crate::snapshot::{Layout, Origin};

/// What stands for all logical clusters.
const ALL: &str = "*";

impl House {
    pub(super) fn do_objects(&mut self, ask: &Ask, kind: Kind, call: Call) -> Reply {
        let cluster = match self.kcp.resolve(&ask.cluster) {
            Ok(cluster) => cluster,
            Err(status) => return Reply::Status(status),
        };
        let one = (cluster.as_str() != ALL).then_some(&cluster);
        let key = || BindingKey { cluster: cluster.clone(), name: ask.name.clone() };
        let verb = match call.doing {
            Doing::Get => return self.get(ask, kind, &key()),
            Doing::List(page) => return page.find(self, ask.origin, kind, one),
            Doing::Watch(start) => return start.begin(self, ask.origin, kind, one.cloned()),
            Doing::DeleteAll(ref selector) => {
                let Some(cluster) = one else { return refusal::not_allowed() };
                let meant = self.kcp.list(ask.origin, kind, Some(cluster)).filter(|object| selector.takes(object));
                let names: Vec<String> = meant.map(|object| name_of(object).to_owned()).collect();
                return self.delete_all(ask, kind, cluster, names, &call);
            }
            Doing::Create(body) => Verb::Create(body),
            Doing::Update(body) => Verb::Update(body),
            Doing::Merge(patch) => Verb::Merge(patch),
            Doing::Apply { body, force } => Verb::Apply { body, force },
            Doing::Delete(preconditions) => Verb::Delete(preconditions),
            Doing::JsonPatch(patch) => {
                let Some(live) = self.kcp.get(ask.origin, kind, &key()) else {
                    return refusal::not_found(ask, &ask.name);
                };
                match json_patch::apply(live, &patch) {
                    Ok(object) => Verb::Update(object),
                    Err(why) => return Reply::Status(refusal::status(422, "Invalid", why)),
                }
            }
        };
        let mut request = Request::get(kind, cluster, ask.name.clone());
        request.origin = ask.origin;
        request.subresource = ask.subresource.clone();
        request.verb = verb;
        request.field_manager = call.manager;
        request.dry_run = call.dry_run;
        let is_dry = request.dry_run;
        match self.handle(request) {
            Ok(answer) => self.answered(ask, kind, answer, is_dry),
            Err(status) => Reply::Status(status),
        }
    }

    /// In the split layout whoever creates a CRD in a workspace takes its lock first.
    fn handle(
        &mut self,
        request: Request,
    ) -> Result<Answer, Box<k8s_openapi::apimachinery::pkg::apis::meta::v1::Status>> {
        let is_admitted = request.kind == Kind::Crd
            && request.origin == Origin::Local
            && !request.dry_run
            && self.layout == Layout::Split
            && request.cluster.as_str() != ALL
            && !request.cluster.as_str().starts_with("system:")
            && matches!(request.verb, Verb::Create(_));
        if !is_admitted {
            return self.kcp.handle(request);
        }
        // What is wrong with it is found before its lock is taken.
        self.kcp.handle(request.clone().dry_run())?;
        self.parties.admit_at_once(&mut self.kcp, request, &mut self.chance)
    }

    fn get(&self, ask: &Ask, kind: Kind, key: &BindingKey) -> Reply {
        if !["", "status"].contains(&&*ask.subresource) {
            return refusal::no_such_part();
        }
        match self.kcp.get_owned(ask.origin, kind, key) {
            Some((object, owners)) => Reply::Object(200, self.body(object, owners)),
            None => refusal::not_found(ask, &ask.name),
        }
    }

    /// An answer with who owns what, which the server keeps beside the object.
    fn answered(&self, ask: &Ask, kind: Kind, answer: Answer, is_dry: bool) -> Reply {
        let Answer { code, body } = answer;
        let is_object =
            self.tells_owners() && body.get("metadata").is_some_and(|metadata| metadata.get("name").is_some());
        let owners = if is_object && !is_dry {
            let cluster = body
                .pointer("/metadata/annotations")
                .and_then(|all| all.get(crate::api::CLUSTER_ANNOTATION))
                .and_then(Value::as_str)
                .unwrap_or_default();
            let key = BindingKey::new(cluster, name_of(&body));
            self.kcp.get_owned(ask.origin, kind, &key).map(|(_, owners)| owners)
        } else {
            None
        };
        Reply::Object(code, Body { object: body, owners })
    }

    fn delete_all(&mut self, ask: &Ask, kind: Kind, cluster: &ClusterName, names: Vec<String>, call: &Call) -> Reply {
        let (mut items, mut failed) = (Vec::new(), None);
        for name in names {
            let Some((object, owners)) =
                self.kcp.get_owned(ask.origin, kind, &BindingKey::new(cluster.clone(), name.as_str()))
            else {
                continue;
            };
            let mut request = Request::delete(kind, cluster.clone(), name.as_str()).managed_by(call.manager.clone());
            request.origin = ask.origin;
            request.dry_run = call.dry_run;
            match self.kcp.handle(request) {
                Ok(_) => items.push(self.body(object, owners)),
                Err(status) => failed = Some(status),
            }
        }
        if let Some(status) = failed {
            return Reply::Status(status);
        }
        Reply::List(Box::new(super::reply::List {
            api_version: kind.api_version(),
            kind: format!("{}List", kind.as_str()),
            is_bare: kind == Kind::Crd,
            items,
            version: self.kcp.version(),
            next: String::new(),
            remaining: None,
        }))
    }
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}
