//! What users and providers do.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::objects::{self, Claim, Entry, Form, Resource, identity};
use super::{BindingPlan, Deed, GHOST, NAMES, Plan, crowded_binding, path_of, target};
use crate::api::Kind;
use crate::sim::{Chance, Request};
use crate::snapshot::{Layer, Layout};

/// How much time passes between two things that are done, in milliseconds.
const PAUSE: u64 = 6_000;

/// Those who live in a world. They remember what they did, and know nothing of what controllers do.
pub(super) struct Users {
    plan: Plan,
    /// The CRDs that they put into workspaces.
    crds: BTreeSet<(String, String)>,
    chance: Chance,
    clock: u64,
    deeds: Vec<Deed>,
}

impl Users {
    pub fn new(plan: Plan, chance: Chance) -> Self {
        Self { plan, crds: BTreeSet::new(), chance, clock: 0, deeds: Vec::new() }
    }

    pub fn deeds(mut self, count: usize) -> Vec<Deed> {
        while self.deeds.len() < count {
            self.pause();
            match self.chance.below(20) {
                0..=2 => self.create_binding(),
                3..=4 => self.delete_binding(),
                5..=6 => self.recreate_binding(),
                7 => self.change_claims(),
                8 => self.touch_binding(),
                9..=10 => self.change_offers(),
                11 => self.move_offer(),
                12 => self.change_identity(),
                13 => self.change_path(),
                14..=15 => self.recreate_schema(),
                16..=17 => self.create_crd(),
                18 => self.delete_crd(),
                _ => self.recreate_export(),
            }
        }
        self.deeds.truncate(count);
        self.deeds
    }

    /// Some things come at once, most after a while.
    fn pause(&mut self) {
        self.clock += if self.chance.permille(300) { self.chance.below(20) } else { self.chance.below(PAUSE) };
    }

    fn want(&mut self, request: Request) {
        self.deeds.push(Deed::new(Duration::from_millis(self.clock), request.managed_by("people")));
    }

    fn any_binding(&mut self) -> Option<usize> {
        let count = self.plan.bindings.len();
        (count > 0).then(|| usize::try_from(self.chance.below(count as u64)).unwrap_or(0))
    }

    fn any_export(&mut self) -> Option<usize> {
        let count = self.plan.exports.len();
        (count > 0).then(|| usize::try_from(self.chance.below(count as u64)).unwrap_or(0))
    }

    fn create_binding(&mut self) {
        let Some(cluster) = self.chance.one_of(&self.plan.workspaces).cloned() else { return };
        let name = if self.chance.permille(100) { GHOST } else { self.chance.one_of(&NAMES).copied().unwrap_or(GHOST) };
        let binding = crowded_binding(&cluster, name, &self.plan.exports, &mut self.chance);
        self.want(Request::create(Kind::ApiBinding, cluster.as_str(), objects::binding(&binding)));
        if !self.plan.bindings.iter().any(|other| other.cluster == cluster && other.name == name) {
            self.plan.bindings.push(binding);
        }
    }

    fn delete_binding(&mut self) {
        let Some(at) = self.any_binding() else { return };
        let BindingPlan { cluster, name, .. } = self.plan.bindings.swap_remove(at);
        self.want(Request::delete(Kind::ApiBinding, cluster.as_str(), name));
    }

    /// The same name, at once or as soon as the old one is gone.
    fn recreate_binding(&mut self) {
        let Some(at) = self.any_binding() else { return };
        let Some(mut binding) = self.plan.bindings.get(at).cloned() else { return };
        self.want(Request::delete(Kind::ApiBinding, binding.cluster.as_str(), binding.name.as_str()));
        self.clock += self.chance.within(1..6_000);
        if self.chance.permille(500) {
            binding.target = target(&binding.cluster, &self.plan.exports, &mut self.chance);
        }
        self.want(Request::create(Kind::ApiBinding, binding.cluster.as_str(), objects::binding(&binding)));
        if let Some(known) = self.plan.bindings.get_mut(at) {
            *known = binding;
        }
    }

    fn merge_binding(&mut self, patch: Value) {
        let Some(at) = self.any_binding() else { return };
        let Some(BindingPlan { cluster, name, .. }) = self.plan.bindings.get(at).cloned() else { return };
        self.want(Request::merge(Kind::ApiBinding, cluster.as_str(), name, patch));
    }

    fn change_claims(&mut self) {
        let claims: Vec<Value> = Claim::any(&mut self.chance).iter().map(Claim::answer).collect();
        self.merge_binding(json!({"spec": {"permissionClaims": claims}}));
    }

    fn touch_binding(&mut self) {
        let number = self.chance.below(1_000).to_string();
        self.merge_binding(json!({"metadata": {"labels": {"touched": number}}}));
    }

    fn merge_export(&mut self, at: usize, patch: Value) {
        let Some(export) = self.plan.exports.get(at) else { return };
        let request = Request::merge(Kind::ApiExport, export.cluster.as_str(), export.name.as_str(), patch);
        self.want(request);
    }

    fn offer(&mut self, at: usize) {
        let Some(export) = self.plan.exports.get(at) else { return };
        let offered = objects::offered(&export.entries);
        self.merge_export(at, json!({"spec": {"resources": offered}}));
    }

    /// An export offers more, or less.
    fn change_offers(&mut self) {
        let (Some(at), entry) = (self.any_export(), Entry::any(&mut self.chance)) else { return };
        let drops = self.chance.permille(500);
        let Some(export) = self.plan.exports.get_mut(at) else { return };
        let cluster = export.cluster.clone();
        let new = if drops { export.entries.pop().and(None) } else { entry };
        if let Some(entry) = new {
            export.entries.push(entry.clone());
            self.want(Request::create(
                Kind::ApiResourceSchema,
                cluster.as_str(),
                objects::schema(&cluster, &entry, Form::Plain),
            ));
        }
        self.offer(at);
    }

    /// A provider moves a resource from one export to another.
    fn move_offer(&mut self) {
        let (Some(from), Some(to)) = (self.any_export(), self.any_export()) else { return };
        let Some(entry) = self.plan.exports.get_mut(from).and_then(|export| export.entries.pop()) else { return };
        let Some(export) = self.plan.exports.get_mut(to) else { return };
        let cluster = export.cluster.clone();
        export.entries.push(entry.clone());
        if self.chance.permille(500) {
            self.offer(from);
        }
        self.clock += self.chance.below(200);
        self.want(Request::create(
            Kind::ApiResourceSchema,
            cluster.as_str(),
            objects::schema(&cluster, &entry, Form::Plain),
        ));
        self.offer(to);
        self.clock += self.chance.below(2_000);
        self.offer(from);
    }

    fn change_identity(&mut self) {
        let Some(at) = self.any_export() else { return };
        let Some(export) = self.plan.exports.get(at) else { return };
        let (cluster, name) = (export.cluster.clone(), export.name.clone());
        let number = self.chance.below(3);
        let identity = if number == 0 { identity(&cluster, &name) } else { format!("id-{number}") };
        let patch = json!({"status": {"identityHash": identity}});
        self.want(Request::merge(Kind::ApiExport, cluster.as_str(), name, patch).of_status());
    }

    fn change_path(&mut self) {
        let Some(at) = self.any_export() else { return };
        let cluster = self.plan.exports.get(at).map(|export| export.cluster.clone()).unwrap_or_default();
        let path = if self.chance.permille(500) { path_of(&cluster) } else { "root:hill".into() };
        self.merge_export(at, json!({"metadata": {"annotations": {"kcp.io/path": path}}}));
    }

    fn recreate_export(&mut self) {
        let Some(at) = self.any_export() else { return };
        let Some(export) = self.plan.exports.get(at).cloned() else { return };
        self.want(Request::delete(Kind::ApiExport, export.cluster.as_str(), export.name.as_str()));
        self.clock += self.chance.within(1..4_000);
        self.want(Request::create(Kind::ApiExport, export.cluster.as_str(), objects::export(&export)));
    }

    /// A schema cannot be changed: it is deleted, and created anew with another uid.
    fn recreate_schema(&mut self) {
        let Some(at) = self.any_export() else { return };
        let Some((cluster, entry)) = self.plan.exports.get(at).and_then(|export| {
            self.chance.one_of(&export.entries).map(|entry| (export.cluster.clone(), entry.clone()))
        }) else {
            return;
        };
        self.want(Request::delete(Kind::ApiResourceSchema, cluster.as_str(), entry.schema()));
        self.clock += self.chance.within(1..3_000);
        let forms = [Form::Plain, Form::Plain, Form::Converted, Form::Unconvertible, Form::Invalid, Form::Broken];
        let form = self.chance.one_of(&forms).copied().unwrap_or(Form::Plain);
        if let Some(conversion) = objects::conversion(&cluster, &entry, form) {
            self.want(Request::create(Kind::ApiConversion, cluster.as_str(), conversion));
        }
        self.want(Request::create(Kind::ApiResourceSchema, cluster.as_str(), objects::schema(&cluster, &entry, form)));
    }

    fn create_crd(&mut self) {
        let Some(cluster) = self.chance.one_of(&self.plan.workspaces).cloned() else { return };
        let Some(which) = self.chance.one_of(&Resource::CROWD).copied() else { return };
        let mut crd = objects::crd(&cluster, &which);
        if let Some(crd) = crd.as_object_mut() {
            crd.remove("status");
        }
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.crds.insert((cluster.clone(), name));
        self.want(Request::create(Kind::Crd, cluster.as_str(), crd));
    }

    fn delete_crd(&mut self) {
        let known: Vec<(String, String)> = self.crds.iter().cloned().collect();
        let Some((cluster, name)) = self.chance.one_of(&known).cloned() else { return };
        self.crds.remove(&(cluster.clone(), name.clone()));
        self.want(Request::delete(Kind::Crd, cluster.as_str(), name));
    }

    pub fn vandals(mut self, layout: Layout, count: usize) -> Vec<Deed> {
        let layer = if layout == Layout::Split { Layer::Bindings } else { Layer::Legacy };
        for _ in 0..count {
            self.clock += self.chance.below(2 * PAUSE);
            let Some(cluster) = self.chance.one_of(&self.plan.workspaces).cloned() else { break };
            let text = match self.chance.below(3) {
                0 => Value::Null,
                1 => json!("{}"),
                _ => json!("{"),
            };
            let patch = json!({"metadata": {"annotations": {layer.annotation(): text}}});
            self.want(Request::merge(Kind::LogicalCluster, cluster.as_str(), "cluster", patch));
        }
        self.deeds
    }
}
