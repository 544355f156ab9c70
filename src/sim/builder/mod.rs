//! Worlds by seed, and what users do in them.
//!
//! ```
//! use apibinding::sim::{Builder, Kcp};
//! use apibinding::snapshot::Origin;
//!
//! let builder = Builder::new(7).bindings(6);
//! let mut kcp = Kcp::new(7);
//! kcp.load(Origin::Local, builder.build());
//! for deed in builder.deeds(10) {
//!     println!("{deed}: {}", kcp.handle(deed.request).is_ok());
//! }
//! ```

mod deeds;
mod objects;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::{Chance, Request};
use crate::snapshot::Layout;
use deeds::Users;
use objects::{Claim, Entry, Form, Resource};

/// A recipe for worlds: workspaces with bindings, and providers with exports that they bind.
///
/// Worlds are small and crowded unless told otherwise: names clash, several exports offer one resource, schemas
/// are missing or invalid, and locks stand about that nobody needs. What every start has in common is that
/// no binding has bound anything yet; so nothing is bound without its lock.
#[derive(Clone, Debug)]
pub struct Builder {
    seed: u64,
    layout: Layout,
    workspaces: usize,
    bindings: usize,
    exports: usize,
    crowded: bool,
}

/// What somebody wants of the server at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deed {
    /// When, since the start.
    pub after: Duration,
    /// What.
    pub request: Request,
}

impl Deed {
    /// That this is wanted then.
    pub fn new(after: Duration, request: Request) -> Self {
        Self { after, request }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.request)
    }
}

/// An export, before it is an object.
#[derive(Clone, Debug)]
struct ExportPlan {
    cluster: String,
    name: String,
    entries: Vec<Entry>,
    claims: Vec<Claim>,
    has_identity: bool,
}

/// A binding, before it is an object.
#[derive(Clone, Debug)]
struct BindingPlan {
    cluster: String,
    name: String,
    /// The path, empty for the binding's own cluster, and the name of an export.
    target: (String, String),
    claims: Vec<Claim>,
}

/// A world, before it is objects.
#[derive(Clone, Debug)]
struct Plan {
    workspaces: Vec<String>,
    providers: Vec<String>,
    exports: Vec<ExportPlan>,
    bindings: Vec<BindingPlan>,
}

/// The names that bindings of crowded worlds have.
const NAMES: [&str; 4] = ["alder", "birch", "cedar", "elm"];

/// A name that no binding has at first.
const GHOST: &str = "yew";

impl Builder {
    /// A small, crowded world of the split layout. All that is left to chance is decided by the seed.
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::of(seed, "size");
        let workspaces = 1 + chance.below(3) as usize;
        Self {
            seed,
            layout: Layout::Split,
            workspaces,
            bindings: 2 + chance.below(5) as usize,
            exports: 1 + chance.below(4) as usize,
            crowded: true,
        }
    }

    /// The same with locks in this layout.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// The same with so many workspaces, at least one.
    #[must_use]
    pub fn workspaces(self, workspaces: usize) -> Self {
        Self { workspaces: workspaces.max(1), ..self }
    }

    /// The same with so many bindings, spread over the workspaces.
    #[must_use]
    pub fn bindings(self, bindings: usize) -> Self {
        Self { bindings, ..self }
    }

    /// The same with so many exports, at least one.
    #[must_use]
    pub fn exports(self, exports: usize) -> Self {
        Self { exports: exports.max(1), ..self }
    }

    /// The same where every binding minds its own business: no two exports offer the same names, nothing is
    /// missing, and the bindings of a workspace bind different exports as long as there are enough.
    #[must_use]
    pub fn peaceful(self) -> Self {
        Self { crowded: false, ..self }
    }

    /// The objects, ready for [`Kcp::load`](super::Kcp::load).
    pub fn build(&self) -> impl Iterator<Item = Value> {
        let plan = self.plan();
        let (mut chance, layout, crowded) = (Chance::of(self.seed, "objects"), self.layout, self.crowded);
        let mut schemas: Vec<Value> = Vec::new();
        for export in &plan.exports {
            for entry in &export.entries {
                let Some(form) = form(crowded, &mut chance) else { continue };
                let schema = objects::schema(&export.cluster, entry, form);
                if !schemas.iter().any(|other| other["metadata"] == schema["metadata"]) {
                    schemas.extend(objects::conversion(&export.cluster, entry, form));
                    schemas.push(schema);
                }
            }
        }
        let exports: Vec<Value> = plan.exports.iter().map(objects::export).collect();
        let crds = self.crds(&plan, &mut chance);
        let homes: Vec<Value> = plan
            .workspaces
            .iter()
            .chain(&plan.providers)
            .map(|cluster| {
                let names: Vec<&str> = plan
                    .bindings
                    .iter()
                    .filter(|binding| binding.cluster == *cluster)
                    .map(|binding| &*binding.name)
                    .collect();
                let locks =
                    if crowded { objects::locks(layout, &names, &mut chance) } else { objects::no_locks(layout) };
                objects::home(cluster, locks)
            })
            .collect();
        let bindings = plan.bindings.into_iter().map(|binding| objects::binding(&binding));
        homes.into_iter().chain(schemas).chain(exports).chain(crds).chain(bindings)
    }

    /// CRDs of workspaces, of which a crowded world has a few.
    fn crds(&self, plan: &Plan, chance: &mut Chance) -> Vec<Value> {
        let mut crds = Vec::new();
        for workspace in plan.workspaces.iter().filter(|_| self.crowded) {
            if chance.permille(300)
                && let Some(resource) = chance.one_of(&Resource::CROWD)
            {
                crds.push(objects::crd(workspace, resource));
            }
        }
        crds
    }

    /// What users and providers do, the earliest first: so many things within some minutes.
    pub fn deeds(&self, count: usize) -> Vec<Deed> {
        Users::new(self.plan(), Chance::of(self.seed, "deeds")).deeds(count)
    }

    /// What people do by hand to locks and statuses that they should not touch: against that nothing is
    /// promised.
    pub fn vandals(&self, count: usize) -> Vec<Deed> {
        Users::new(self.plan(), Chance::of(self.seed, "vandals")).vandals(self.layout, count)
    }

    fn plan(&self) -> Plan {
        let mut chance = Chance::of(self.seed, "plan");
        let few = |names: [&str; 3], count: usize, what: &str| -> Vec<String> {
            let numbered = (names.len()..count).map(|number| format!("{what}-{number}"));
            names.into_iter().take(count).map(str::to_owned).chain(numbered).collect()
        };
        let workspaces = few(["meadow", "brook", "heath"], self.workspaces, "meadow");
        let providers = few(["farm", "dairy", "mill"], if self.crowded { 2 } else { 1 }, "farm");
        let exports: Vec<ExportPlan> = (0..self.exports)
            .map(|number| {
                if self.crowded {
                    crowded_export(number, &providers, &workspaces, &mut chance)
                } else {
                    peaceful_export(number)
                }
            })
            .collect();
        let mut bindings: Vec<BindingPlan> = Vec::new();
        for number in 0..self.bindings {
            let cluster = workspaces.get(number % workspaces.len()).cloned().unwrap_or_default();
            let binding = if self.crowded {
                let name = chance.one_of(&NAMES).copied().unwrap_or_default();
                crowded_binding(&cluster, name, &exports, &mut chance)
            } else {
                let which = number / workspaces.len() + number % workspaces.len() * 7;
                let export = exports.get(which % exports.len());
                let target = export.map(|export| (path_of(&export.cluster), export.name.clone())).unwrap_or_default();
                BindingPlan { cluster, name: format!("alder-{number}"), target, claims: Vec::new() }
            };
            let is_there = bindings
                .iter()
                .rev()
                .take(64)
                .any(|other| other.cluster == binding.cluster && other.name == binding.name);
            if !is_there {
                bindings.push(binding);
            }
        }
        Plan { workspaces, providers, exports, bindings }
    }
}

/// Of what form a schema is; `None`: it is missing.
fn form(crowded: bool, chance: &mut Chance) -> Option<Form> {
    if !crowded {
        return Some(Form::Plain);
    }
    match chance.below(20) {
        0 => None,
        1 => Some(Form::Invalid),
        2 => Some(Form::Unconvertible),
        3 => Some(Form::Converted),
        4 => Some(Form::Broken),
        _ => Some(Form::Plain),
    }
}

/// The path of a logical cluster.
fn path_of(cluster: &str) -> String {
    format!("root:{cluster}")
}

fn crowded_export(number: usize, providers: &[String], workspaces: &[String], chance: &mut Chance) -> ExportPlan {
    // Some workspaces offer what they use themselves.
    let own = chance.permille(150).then(|| chance.one_of(workspaces)).flatten();
    let cluster = own.or_else(|| chance.one_of(providers)).cloned().unwrap_or_default();
    let name = ["birds", "beasts", "fruits", "herbs"].get(number % 4).copied().unwrap_or_default().to_owned();
    let count = 1 + chance.below(3);
    let entries: Vec<Entry> = (0..count).filter_map(|_| Entry::any(chance)).collect();
    let claims = if chance.permille(200) { Claim::any(chance).into_iter().collect() } else { Vec::new() };
    ExportPlan { cluster, name, entries, claims, has_identity: !chance.permille(200) }
}

fn peaceful_export(number: usize) -> ExportPlan {
    let entries = (0..3).map(|which| Entry::numbered(number * 3 + which)).collect();
    ExportPlan {
        cluster: "farm".into(),
        name: format!("birds-{number}"),
        entries,
        claims: Vec::new(),
        has_identity: true,
    }
}

fn crowded_binding(cluster: &str, name: &str, exports: &[ExportPlan], chance: &mut Chance) -> BindingPlan {
    let target = target(cluster, exports, chance);
    let claims = if chance.permille(250) { Claim::any(chance).into_iter().collect() } else { Vec::new() };
    BindingPlan { cluster: cluster.into(), name: name.into(), target, claims }
}

/// What a binding of a crowded world names: nearly always one of the exports.
fn target(cluster: &str, exports: &[ExportPlan], chance: &mut Chance) -> (String, String) {
    let Some(export) = chance.one_of(exports).filter(|_| !chance.clone().permille(40)) else {
        return ("root:nowhere".into(), "birds".into());
    };
    let path = match chance.below(4) {
        _ if export.cluster == cluster && chance.permille(700) => String::new(),
        0 => export.cluster.clone(),
        _ => path_of(&export.cluster),
    };
    (path, export.name.clone())
}
