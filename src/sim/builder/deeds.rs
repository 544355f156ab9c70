//! What users and providers do, one after another, each fitting to what was done before.

use std::time::Duration;

use serde_json::{Value, json};

use super::objects::{answers, claims, conversion, crd_of};
use super::plan::{Binding, Entry, Export, Form, OwnCrd, Plan, draw_new_binding};
use super::pool::{BINDINGS, PROVIDERS, path_of};
use super::{Deed, objects};
use crate::api::{ClusterName, Kind, PATH_ANNOTATION};
use crate::sim::{Chance, Request};

/// Under whose name people write.
const PERSON: &str = "kubectl-edit";
/// Who tells the identity of an export.
const IDENTITIES: &str = "kcp-apiexport";

/// One sort of deed. `None`: there is nothing that it could be done to.
pub(super) type Sort = fn(&mut Drawing) -> Option<()>;

/// All sorts of deeds, each with how often it is done.
pub(super) const DEEDS: [(u64, Sort); 20] = [
    (14, create_binding),
    (10, delete_binding),
    (12, replace_binding),
    (8, answer_claims),
    (8, touch_binding),
    (1, refer_elsewhere),
    (6, create_export),
    (2, delete_export),
    (8, change_resources),
    (3, change_claims),
    (6, move_resource),
    (3, change_identity),
    (2, change_path),
    (5, replace_schema),
    (6, create_schema),
    (2, delete_schema),
    (3, toggle_conversion),
    (8, toggle_crd),
    (2, delete_bound_crd),
    (12, create_home),
];

/// Deeds being drawn. The plan is how the world should look after them.
pub(super) struct Drawing {
    pub plan: Plan,
    pub chance: Chance,
    now: Duration,
    deeds: Vec<Deed>,
}

impl Drawing {
    /// Draws so many deeds of these sorts, in the order of their times.
    pub fn run(plan: Plan, chance: Chance, count: usize, sorts: &[(u64, Sort)]) -> Vec<Deed> {
        let mut drawing = Self { plan, chance, now: Duration::ZERO, deeds: Vec::new() };
        let total = sorts.iter().map(|(weight, _)| weight).sum();
        // A world without anything to do something to is left alone some day.
        for _ in 0..count.saturating_mul(50) {
            if drawing.deeds.len() >= count {
                break;
            }
            let mut drawn = drawing.chance.below(total);
            let sort = sorts.iter().find(|(weight, _)| {
                let is_it = drawn < *weight;
                drawn = drawn.saturating_sub(*weight);
                is_it
            });
            if sort.and_then(|(_, sort)| sort(&mut drawing)).is_some() {
                drawing.wait();
            }
        }
        drawing.deeds.sort_by_key(|deed| deed.after);
        drawing.deeds.truncate(count);
        drawing.deeds
    }

    /// Mostly people come all at once, now and then nobody for a while.
    fn wait(&mut self) {
        let most = match self.chance.below(20) {
            0..10 => 500,
            10..19 => 8_000,
            _ => 100_000,
        };
        self.now += Duration::from_millis(self.chance.below(most));
    }

    pub fn push(&mut self, request: Request) {
        self.deeds.push(Deed { after: self.now, request: request.managed_by(PERSON) });
    }

    /// What follows from what was just done: at once, or within a while.
    fn follow(&mut self, request: Request) {
        let wait = match self.chance.below(4) {
            0 => 0,
            1 => self.chance.below(50),
            _ => self.chance.below(3_000),
        };
        self.deeds.push(Deed { after: self.now + Duration::from_millis(wait), request });
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.chance.below(end as u64)).unwrap_or_default()
    }

    /// Some position of a list that fits.
    fn pick<T>(&mut self, list: impl Fn(&Plan) -> &[T], fits: impl Fn(&T) -> bool) -> Option<usize> {
        // A few tries, so that it takes no longer in a large world.
        (0..12).find_map(|_| {
            let at = self.below(list(&self.plan).len());
            list(&self.plan).get(at).is_some_and(&fits).then_some(at)
        })
    }

    pub fn some_binding(&mut self) -> Option<usize> {
        self.pick(|plan| &plan.bindings, |binding| binding.is_there)
    }

    fn some_export(&mut self) -> Option<usize> {
        self.pick(|plan| &plan.exports, |export| export.is_there)
    }

    fn change_export(&mut self, at: usize, spec: impl FnOnce(&Plan, &Export) -> Value) -> Option<Request> {
        let export = self.plan.exports.get(at)?;
        let patch = json!({"spec": spec(&self.plan, export)});
        Some(Request::merge(Kind::ApiExport, export.cluster.as_str(), export.name.as_str(), patch))
    }

    fn create_at(&self, at: usize) -> Option<Request> {
        let binding = self.plan.bindings.get(at)?;
        Some(Request::create(Kind::ApiBinding, self.plan.cluster_of(binding), self.plan.binding(binding)))
    }

    fn delete_at(&self, at: usize) -> Option<Request> {
        let binding = self.plan.bindings.get(at)?;
        Some(Request::delete(Kind::ApiBinding, self.plan.cluster_of(binding), binding.name.as_str()))
    }

    pub fn merge_at(&self, at: usize, patch: Value) -> Option<Request> {
        let binding = self.plan.bindings.get(at)?;
        Some(Request::merge(Kind::ApiBinding, self.plan.cluster_of(binding), binding.name.as_str(), patch))
    }
}

/// A new one, or one under a name that was used before.
fn create_binding(it: &mut Drawing) -> Option<()> {
    let gone = it.pick(|plan| &plan.bindings, |binding| !binding.is_there);
    if !it.plan.is_crowded {
        // As it was: anything else might be in somebody's way.
        let at = gone?;
        it.plan.bindings.get_mut(at)?.is_there = true;
        let create = it.create_at(at)?;
        it.push(create);
        return Some(());
    }
    let (home, name) = match gone.filter(|_| it.chance.permille(500)).and_then(|at| it.plan.bindings.get(at)) {
        Some(Binding { home, name, .. }) => (*home, name.clone()),
        None => (it.below(it.plan.consumers), (*it.chance.one_of(&BINDINGS)?).to_owned()),
    };
    let is_it = |binding: &Binding| binding.home == home && binding.name == name;
    let known = it.plan.bindings.iter().position(is_it);
    let next = draw_new_binding(&it.plan, &mut it.chance, home, name);
    let at = match known {
        Some(at) if it.plan.bindings.get(at)?.is_there => return None,
        Some(at) => {
            *it.plan.bindings.get_mut(at)? = next;
            at
        }
        None => {
            it.plan.bindings.push(next);
            it.plan.bindings.len() - 1
        }
    };
    let create = it.create_at(at)?;
    it.push(create);
    Some(())
}

fn delete_binding(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    it.plan.bindings.get_mut(at)?.is_there = false;
    let delete = it.delete_at(at)?;
    it.push(delete);
    Some(())
}

/// Deletes one and creates it again at once: as it was, or for another export, which is the only way
/// to have that.
fn replace_binding(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    let delete = it.delete_at(at)?;
    it.push(delete);
    if it.plan.is_crowded && it.chance.permille(600) {
        let Binding { home, name, .. } = it.plan.bindings.get(at)?.clone();
        *it.plan.bindings.get_mut(at)? = draw_new_binding(&it.plan, &mut it.chance, home, name);
    }
    let create = it.create_at(at)?;
    it.follow(create.managed_by(PERSON));
    Some(())
}

fn answer_claims(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    let export = it.plan.bindings.get(at)?.export;
    let answered = it.plan.draw_answers(&mut it.chance, export);
    let patch = json!({"spec": {"permissionClaims": answers(&answered)}});
    it.plan.bindings.get_mut(at)?.claims = answered;
    let merge = it.merge_at(at, patch)?;
    it.push(merge);
    Some(())
}

fn touch_binding(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    let note = it.chance.below(1000).to_string();
    let merge = it.merge_at(at, json!({"metadata": {"annotations": {"farm.example/note": note}}}))?;
    it.push(merge);
    Some(())
}

/// Which a server refuses.
fn refer_elsewhere(it: &mut Drawing) -> Option<()> {
    let at = it.some_binding()?;
    let merge = it.merge_at(at, json!({"spec": {"reference": {"export": {"name": "elsewhere"}}}}))?;
    it.push(merge);
    Some(())
}

/// One that bindings may be waiting for. Its identity comes later.
fn create_export(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.exports, |export| !export.is_there)?;
    let number = it.chance.below(100);
    let export = it.plan.exports.get_mut(at)?;
    export.is_there = true;
    export.path = path_of(&export.cluster);
    if export.identity.is_empty() || number < 50 {
        export.identity = format!("id-{}-{}-{number}", export.cluster, export.name);
    }
    let export = it.plan.exports.get(at)?;
    let create = Request::create(Kind::ApiExport, export.cluster.as_str(), it.plan.export(export));
    let tell = identity(export);
    it.push(create);
    it.follow(tell);
    Some(())
}

fn identity(export: &Export) -> Request {
    let patch = json!({"status": {"identityHash": export.identity}});
    let request = Request::merge(Kind::ApiExport, export.cluster.as_str(), export.name.as_str(), patch);
    request.of_status().managed_by(IDENTITIES)
}

fn delete_export(it: &mut Drawing) -> Option<()> {
    let at = it.some_export()?;
    let export = it.plan.exports.get_mut(at)?;
    export.is_there = false;
    let delete = Request::delete(Kind::ApiExport, export.cluster.as_str(), export.name.as_str());
    it.push(delete);
    Some(())
}

/// Adds a resource to an export, or drops one.
fn change_resources(it: &mut Drawing) -> Option<()> {
    let at = it.some_export()?;
    let export = it.plan.exports.get(at)?;
    let cluster = export.cluster.clone();
    let drops = export.entries.len() > 2 || it.chance.permille(400) || !it.plan.is_crowded;
    if drops {
        let entries = it.plan.exports.get(at)?.entries.len();
        let dropped = it.below(entries);
        let entries = &mut it.plan.exports.get_mut(at)?.entries;
        if entries.len() < 2 {
            return None;
        }
        entries.remove(dropped);
    } else {
        let schema = it.pick(|plan| &plan.schemas, |schema| schema.cluster == cluster)?;
        let is_virtual = it.chance.permille(130);
        add_entry(&mut it.plan, at, Entry { schema, is_virtual })?;
    }
    let merge = it.change_export(at, |plan, export| json!({"resources": plan.offered(export)}))?;
    it.push(merge);
    Some(())
}

fn add_entry(plan: &mut Plan, export: usize, entry: Entry) -> Option<()> {
    let resource = plan.resource_of(entry.schema)?.clone();
    let entries = &plan.exports.get(export)?.entries;
    let is_new = entries.iter().all(|other| plan.resource_of(other.schema) != Some(&resource));
    plan.exports.get_mut(export).filter(|_| is_new)?.entries.push(entry);
    Some(())
}

fn change_claims(it: &mut Drawing) -> Option<()> {
    let at = it.some_export()?;
    let claim = it.plan.draw_claim(&mut it.chance);
    let export = it.plan.exports.get_mut(at)?;
    let known = export.claims.len();
    export.claims.retain(|other| other.group != claim.group || other.resource != claim.resource);
    if export.claims.len() == known {
        export.claims.push(claim);
    }
    let merge = it.change_export(at, |_, export| json!({"permissionClaims": claims(&export.claims)}))?;
    it.push(merge);
    Some(())
}

/// From one export to another one of the same provider.
fn move_resource(it: &mut Drawing) -> Option<()> {
    let from = it.pick(|plan| &plan.exports, |export| export.is_there && !export.entries.is_empty())?;
    let Export { cluster, entries, name, .. } = it.plan.exports.get(from)?.clone();
    let is_other = |export: &Export| export.is_there && export.cluster == cluster && export.name != name;
    let to = it.pick(|plan| &plan.exports, is_other)?;
    let moved = *it.chance.one_of(&entries)?;
    add_entry(&mut it.plan, to, moved)?;
    it.plan.exports.get_mut(from)?.entries.retain(|entry| entry.schema != moved.schema);
    let resources = |plan: &Plan, export: &Export| json!({"resources": plan.offered(export)});
    let (take, give) = (it.change_export(from, resources)?, it.change_export(to, resources)?);
    let (first, second) = if it.chance.permille(300) { (give, take) } else { (take, give) };
    it.push(first);
    it.follow(second.managed_by(PERSON));
    Some(())
}

/// Of one that has none yet too.
fn change_identity(it: &mut Drawing) -> Option<()> {
    let at = it.some_export()?;
    let number = it.chance.below(100);
    let export = it.plan.exports.get_mut(at)?;
    export.identity = format!("id-{}-{}-{number}", export.cluster, export.name);
    let tell = identity(export);
    it.deeds.push(Deed { after: it.now, request: tell });
    Some(())
}

/// Away, to that of somebody else, or back.
fn change_path(it: &mut Drawing) -> Option<()> {
    let at = it.some_export()?;
    let other = it.chance.below(4);
    let somebody = it.chance.one_of(&PROVIDERS).copied().unwrap_or_default();
    let export = it.plan.exports.get_mut(at)?;
    export.path = match other {
        0 => String::new(),
        1 => path_of(somebody),
        _ => path_of(&export.cluster),
    };
    let path = if export.path.is_empty() { Value::Null } else { json!(export.path) };
    let patch = json!({"metadata": {"annotations": {PATH_ANNOTATION: path}}});
    let merge = Request::merge(Kind::ApiExport, export.cluster.as_str(), export.name.as_str(), patch);
    it.push(merge);
    Some(())
}

fn delete_schema_at(it: &mut Drawing, at: usize) -> Option<Request> {
    let schema = it.plan.schemas.get_mut(at)?;
    schema.is_there = false;
    schema.uid.clear();
    Some(Request::delete(Kind::ApiResourceSchema, schema.cluster.as_str(), schema.name.as_str()))
}

fn create_schema_at(it: &mut Drawing, at: usize) -> Option<Request> {
    let schema = it.plan.schemas.get_mut(at)?;
    schema.is_there = true;
    if schema.form == Form::LacksConversion {
        // What a server has from earlier it does not take again.
        schema.form = Form::ConvertedByNone;
    }
    let schema = it.plan.schemas.get(at)?;
    Some(Request::create(Kind::ApiResourceSchema, schema.cluster.as_str(), it.plan.schema(schema)))
}

/// As nothing in a schema can be changed, it is deleted and created anew: the same, or another one.
fn replace_schema(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.schemas, |schema| schema.is_there)?;
    let delete = delete_schema_at(it, at)?;
    it.push(delete);
    if it.chance.permille(500) {
        let form = Form::draw(&mut it.chance, true);
        it.plan.schemas.get_mut(at)?.form = form;
    }
    let create = create_schema_at(it, at)?;
    it.follow(create.managed_by(PERSON));
    Some(())
}

/// One that an export may name since long.
fn create_schema(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.schemas, |schema| !schema.is_there)?;
    let create = create_schema_at(it, at)?;
    it.push(create);
    Some(())
}

fn delete_schema(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.schemas, |schema| schema.is_there)?;
    let delete = delete_schema_at(it, at)?;
    it.push(delete);
    Some(())
}

fn toggle_conversion(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.schemas, |_| true)?;
    let schema = it.plan.schemas.get_mut(at)?;
    schema.has_conversion = !schema.has_conversion;
    let cluster = schema.cluster.as_str();
    let request = match schema.has_conversion {
        true => Request::create(Kind::ApiConversion, cluster, conversion(schema)),
        false => Request::delete(Kind::ApiConversion, cluster, schema.name.as_str()),
    };
    it.push(request);
    Some(())
}

/// Creates a CRD of a workspace, or deletes one.
fn toggle_crd(it: &mut Drawing) -> Option<()> {
    let there = it.pick(|plan| &plan.crds, |crd| crd.is_there);
    if let Some(at) = there.filter(|_| it.chance.permille(500)) {
        let crd = it.plan.crds.get_mut(at)?;
        crd.is_there = false;
        let (home, resource) = (crd.home, crd.resource);
        let name = it.plan.resources.get(resource)?.key().crd_name();
        let delete = Request::delete(Kind::Crd, it.plan.homes.get(home)?.cluster.as_str(), name);
        it.push(delete);
        return Some(());
    }
    let (home, resource) = (it.below(it.plan.consumers), it.below(it.plan.resources.len()));
    let is_it = |crd: &OwnCrd| crd.home == home && crd.resource == resource && crd.is_there;
    if !it.plan.is_crowded || it.plan.crds.iter().any(is_it) {
        return None;
    }
    let cluster = it.plan.homes.get(home)?.cluster.clone();
    let create = Request::create(Kind::Crd, cluster.as_str(), crd_of(&cluster, it.plan.resources.get(resource)?));
    it.plan.crds.push(OwnCrd { home, resource, is_accepted: true, is_there: true });
    it.push(create);
    Some(())
}

/// Of a schema whose uid is known since the start.
fn delete_bound_crd(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.schemas, |schema| schema.has_crd && !schema.uid.is_empty())?;
    let uid = it.plan.schemas.get(at)?.uid.clone();
    it.push(Request::delete(Kind::Crd, ClusterName::BOUND_CRDS, uid.as_str()));
    Some(())
}

/// Of a workspace whose bindings wait for it.
fn create_home(it: &mut Drawing) -> Option<()> {
    let at = it.pick(|plan| &plan.homes, |home| !home.is_there)?;
    it.plan.homes.get_mut(at)?.is_there = true;
    let home = it.plan.homes.get(at)?;
    let mut body = it.plan.home(home);
    if it.plan.layout == crate::snapshot::Layout::Single {
        // In that layout the annotation comes with the LogicalCluster, or a moment after it.
        let layer = super::locks::own_layer(it.plan.layout);
        if let Some(annotations) = body.pointer_mut("/metadata/annotations") {
            objects::insert(annotations, layer.annotation(), json!("{}"));
        }
    }
    let create = Request::create(Kind::LogicalCluster, home.cluster.as_str(), body);
    it.push(create);
    Some(())
}
