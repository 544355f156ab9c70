//! What is in a world, before it is written down as objects: who refers to whom, by position.

use super::pool::{BINDINGS, EXPORTS, PROVIDERS, Resource, UNKNOWN_EXPORT, WORKSPACES, path_of};
use super::{Builder, fleet, locks};
use crate::sim::Chance;
use crate::snapshot::{Layer, Layout};

/// A world.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub layout: Layout,
    pub is_crowded: bool,
    pub schema_bytes: usize,
    /// Workspaces with bindings first.
    pub homes: Vec<Home>,
    pub consumers: usize,
    pub resources: Vec<Resource>,
    pub schemas: Vec<Schema>,
    pub exports: Vec<Export>,
    pub bindings: Vec<Binding>,
    pub crds: Vec<OwnCrd>,
}

/// A logical cluster.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub cluster: String,
    /// False for what comes later; so it is with the others.
    pub is_there: bool,
    /// Positions of its bindings.
    pub bindings: Vec<usize>,
    /// Its lock annotations.
    pub locks: Vec<(Layer, String)>,
}

/// An APIResourceSchema, with its bound CRD and its conversion.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub cluster: String,
    pub resource: usize,
    pub name: String,
    pub form: Form,
    /// Empty where only the server knows it.
    pub uid: String,
    pub is_there: bool,
    pub has_conversion: bool,
    pub has_crd: bool,
}

/// What can be right and wrong with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// With everything that is copied into a bound CRD.
    Rich,
    ConvertedByNone,
    ConvertedByWebhook,
    /// Several versions and no conversion: a server takes that no more, but has it from earlier.
    LacksConversion,
    LacksClientConfig,
    /// No bound CRD can be made of it.
    WrongType,
    /// The server refuses its bound CRD.
    Untyped,
    /// The same, for its webhook.
    BadHook,
}

impl Form {
    /// True if its bound CRD can be made, and a server takes it.
    pub fn is_sound(self) -> bool {
        matches!(self, Self::Plain | Self::Rich | Self::ConvertedByNone | Self::ConvertedByWebhook)
    }

    /// True if a server refuses its bound CRD, each time that it is asked.
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Untyped | Self::BadHook)
    }

    /// Usually a sound one; `new`: as a server takes it today.
    pub fn draw(chance: &mut Chance, new: bool) -> Self {
        match chance.below(40) {
            0..24 => Self::Plain,
            24..28 => Self::Rich,
            28..31 => Self::ConvertedByNone,
            31..34 => Self::ConvertedByWebhook,
            34 => Self::LacksClientConfig,
            35 => Self::WrongType,
            36 => Self::Untyped,
            37 => Self::BadHook,
            38 if !new => Self::LacksConversion,
            _ => Self::Plain,
        }
    }
}

/// An APIExport.
#[derive(Clone, Debug)]
pub(super) struct Export {
    pub cluster: String,
    pub name: String,
    /// Empty: not known.
    pub path: String,
    /// Empty: none yet.
    pub identity: String,
    pub entries: Vec<Entry>,
    pub claims: Vec<Claim>,
    pub is_there: bool,
}

/// One resource of an export.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub schema: usize,
    pub is_virtual: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub group: String,
    pub resource: String,
    pub identity: String,
}

/// An APIBinding.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub home: usize,
    pub name: String,
    /// Empty where only the server knows it.
    pub uid: String,
    /// Path, which may be empty, and name.
    pub reference: Option<(String, String)>,
    /// The export that this refers to.
    pub export: Option<usize>,
    /// Answers to claims: true for an accepted one.
    pub claims: Vec<(Claim, bool)>,
    pub phase: &'static str,
    /// Which of the export's entries are bound.
    pub bound: Vec<Entry>,
    pub age_minutes: i64,
    pub is_there: bool,
}

/// A CRD of a workspace.
#[derive(Clone, Debug)]
pub(super) struct OwnCrd {
    pub home: usize,
    pub resource: usize,
    /// False: somebody else has its names.
    pub is_accepted: bool,
    pub is_there: bool,
}

impl Plan {
    pub fn of(builder: &Builder) -> Self {
        if builder.crowded { crowded(builder) } else { fleet::spread(builder) }
    }

    pub fn resource_of(&self, schema: usize) -> Option<&Resource> {
        self.resources.get(self.schemas.get(schema)?.resource)
    }

    pub fn cluster_of(&self, binding: &Binding) -> &str {
        self.homes.get(binding.home).map_or("", |home| &home.cluster)
    }

    /// What the bindings of a workspace have bound.
    pub fn bound_in(&self, home: &Home) -> impl Iterator<Item = (&Binding, &Resource)> {
        let bindings = home.bindings.iter().filter_map(|at| self.bindings.get(*at));
        bindings.flat_map(|binding| {
            let resources = binding.bound.iter().filter_map(|entry| self.resource_of(entry.schema));
            resources.map(move |resource| (binding, resource))
        })
    }

    /// A claim on what some export offers, or on something that is built in.
    pub fn draw_claim(&self, chance: &mut Chance) -> Claim {
        let export = chance.one_of(&self.exports);
        let offered = export.and_then(|export| Some((export, chance.one_of(&export.entries)?)));
        let resource = offered.and_then(|(export, entry)| Some((export, self.resource_of(entry.schema)?)));
        match resource.filter(|_| chance.permille(800)) {
            Some((export, resource)) => Claim {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                identity: export.identity.clone(),
            },
            None => Claim { group: String::new(), resource: "configmaps".into(), identity: String::new() },
        }
    }

    /// How a binding of this workspace may refer to an export.
    pub fn draw_reference(&self, chance: &mut Chance, home: usize, export: usize) -> Option<(String, String)> {
        let Export { cluster, name, path, .. } = self.exports.get(export)?;
        let is_own = self.homes.get(home).is_some_and(|home| home.cluster == *cluster);
        let path = match chance.below(3) {
            _ if is_own && chance.permille(600) => "",
            0 => cluster,
            _ if path.is_empty() => cluster,
            _ => path,
        };
        Some((path.to_owned(), name.clone()))
    }

    /// Answers to the claims of an export.
    pub fn draw_answers(&self, chance: &mut Chance, export: Option<usize>) -> Vec<(Claim, bool)> {
        let claims = export.and_then(|at| self.exports.get(at)).map_or(&[] as &[Claim], |export| &export.claims);
        let answered = claims.iter().filter(|_| chance.permille(850)).cloned().collect::<Vec<_>>();
        answered.into_iter().map(|claim| (claim, chance.permille(750))).collect()
    }

    pub fn index_bindings(&mut self) {
        for (at, binding) in self.bindings.iter().enumerate() {
            if let Some(home) = self.homes.get_mut(binding.home) {
                home.bindings.push(at);
            }
        }
    }
}

/// An empty one.
pub(super) fn home(cluster: impl Into<String>) -> Home {
    Home { cluster: cluster.into(), is_there: true, bindings: Vec::new(), locks: Vec::new() }
}

/// A name of a pool, and further ones once that is used up.
fn numbered(pool: &[&str], at: usize) -> String {
    pool.get(at).map_or_else(|| format!("{}-{at}", pool.last().copied().unwrap_or_default()), |name| (*name).to_owned())
}

/// A few of everything, and everything in the way of something else.
fn crowded(builder: &Builder) -> Plan {
    let mut chance = Chance::of(builder.seed, "world");
    let mut draw = |asked: Option<usize>, from: u64, to: u64| {
        let drawn = usize::try_from(chance.within(from..to + 1)).unwrap_or_default();
        asked.unwrap_or(drawn)
    };
    let (workspaces, exports, bindings) =
        (draw(builder.workspaces, 1, 3), draw(builder.exports, 1, 4), draw(builder.bindings, 2, 8));
    let providers = PROVIDERS.get(..draw(None, 2, 3)).unwrap_or_default();
    let mut plan = Plan {
        layout: builder.layout,
        is_crowded: true,
        schema_bytes: builder.schema_bytes,
        homes: (0..workspaces).map(|at| home(numbered(&WORKSPACES, at))).collect(),
        consumers: workspaces,
        resources: Resource::clashing(),
        schemas: Vec::new(),
        exports: Vec::new(),
        bindings: Vec::new(),
        crds: Vec::new(),
    };
    for cluster in providers {
        if !plan.homes.iter().any(|home| home.cluster == *cluster) {
            plan.homes.push(home(*cluster));
        }
        draw_schemas(&mut plan, &mut chance, cluster, builder.bound == Some(true));
    }
    for at in 0..exports {
        draw_export(&mut plan, &mut chance, builder, providers, at);
    }
    for at in 0..plan.exports.len() {
        let most = builder.claims.unwrap_or(2) as u64;
        let count = if builder.claims.is_some() { most } else { chance.below(most + 1) };
        for _ in 0..count {
            let claim = plan.draw_claim(&mut chance);
            let Some(export) = plan.exports.get_mut(at) else { continue };
            // A server tells claims apart by what they are on.
            let is_same = |other: &Claim| other.group == claim.group && other.resource == claim.resource;
            if !export.claims.iter().any(is_same) {
                export.claims.push(claim);
            }
        }
    }
    for _ in 0..bindings {
        draw_binding(&mut plan, &mut chance);
    }
    plan.index_bindings();
    for home in plan.homes.iter_mut().take(workspaces) {
        home.is_there = !chance.permille(60);
    }
    bind(&mut plan, &mut chance, builder.bound);
    draw_crds(&mut plan, &mut chance);
    locks::draw(&mut plan, &mut chance);
    plan
}

/// `at_rest`: nothing that is tried again and again.
fn draw_schemas(plan: &mut Plan, chance: &mut Chance, cluster: &str, at_rest: bool) {
    for at in 0..plan.resources.len() {
        // The first one is wanted by most.
        let is_offered = chance.permille(if at == 0 { 900 } else { 550 });
        for revision in 1..=if chance.permille(150) { 2 } else { 1 } {
            let Some(resource) = plan.resources.get(at).filter(|_| is_offered) else { continue };
            let name = format!("v{revision}.{}", resource.key().crd_name());
            let form = Form::draw(chance, false);
            plan.schemas.push(Schema {
                cluster: cluster.to_owned(),
                resource: at,
                uid: format!("{cluster}-{name}-0"),
                name,
                form: if at_rest && form.is_refused() { Form::Plain } else { form },
                is_there: !chance.permille(60),
                has_conversion: chance.permille(100),
                has_crd: chance.permille(150),
            });
        }
    }
}

fn draw_export(plan: &mut Plan, chance: &mut Chance, builder: &Builder, providers: &[&str], at: usize) {
    let Some(cluster) = chance.one_of(providers).copied() else { return };
    let mut taken = plan.exports.iter().filter(|export| export.cluster == cluster);
    let mut name = chance.one_of(&EXPORTS).copied().unwrap_or_default().to_owned();
    if taken.any(|export| export.name == name) {
        name = format!("{name}-{at}");
    }
    let mut offered: Vec<usize> = (0..plan.schemas.len()).collect();
    offered.retain(|at| plan.schemas.get(*at).is_some_and(|schema| schema.cluster == cluster));
    chance.shuffle(&mut offered);
    let count = builder.resources.unwrap_or_else(|| usize::try_from(chance.below(4)).unwrap_or_default());
    let mut entries: Vec<Entry> = Vec::new();
    for schema in offered {
        let is_new = entries.iter().all(|other| plan.resource_of(other.schema) != plan.resource_of(schema));
        if entries.len() < count && is_new {
            entries.push(Entry { schema, is_virtual: chance.permille(130) });
        }
    }
    let path = match chance.below(20) {
        0 => String::new(),
        // As if it was that of another cluster: then two exports may answer to one name.
        1 => path_of(chance.one_of(providers).copied().unwrap_or(cluster)),
        _ => path_of(cluster),
    };
    plan.exports.push(Export {
        cluster: cluster.to_owned(),
        path,
        identity: if chance.permille(80) { String::new() } else { format!("id-{cluster}-{name}") },
        name,
        entries,
        claims: Vec::new(),
        is_there: !chance.permille(80),
    });
}

fn draw_binding(plan: &mut Plan, chance: &mut Chance) {
    let home = usize::try_from(chance.below(plan.consumers as u64)).unwrap_or_default();
    let is_taken = |name: &str| plan.bindings.iter().any(|other| other.home == home && other.name == name);
    let free: Vec<&str> = BINDINGS.into_iter().filter(|name| !is_taken(name)).collect();
    let name = chance.one_of(&free).map_or_else(|| format!("elm-{}", plan.bindings.len()), |name| (*name).to_owned());
    let mut binding = draw_new_binding(plan, chance, home, name);
    binding.uid = format!("{}-{}-0", plan.cluster_of(&binding), binding.name);
    binding.is_there = !chance.permille(100);
    plan.bindings.push(binding);
}

/// A binding that somebody makes now.
pub(super) fn draw_new_binding(plan: &Plan, chance: &mut Chance, home: usize, name: String) -> Binding {
    let export = usize::try_from(chance.below(plan.exports.len() as u64)).unwrap_or_default();
    let (export, reference) = match chance.below(40) {
        0 => (None, None),
        1 => (None, Some((path_of("farm"), UNKNOWN_EXPORT.to_owned()))),
        _ => (Some(export), plan.draw_reference(chance, home, export)),
    };
    Binding {
        home,
        name,
        uid: String::new(),
        reference,
        export: export.filter(|export| *export < plan.exports.len()),
        claims: plan.draw_answers(chance, export),
        phase: "",
        bound: Vec::new(),
        age_minutes: chance.within(1..90).cast_signed(),
        is_there: true,
    }
}

/// Lets some bindings have what nobody else has by then.
fn bind(plan: &mut Plan, chance: &mut Chance, asked: Option<bool>) {
    let mut order: Vec<usize> = (0..plan.bindings.len()).collect();
    chance.shuffle(&mut order);
    for at in order {
        let (is_bound, is_begun) = match asked {
            Some(bound) => (bound, bound),
            None => (chance.permille(500), chance.permille(300)),
        };
        let Some(binding) = plan.bindings.get(at).filter(|binding| binding.is_there) else { continue };
        let Some(export) = binding.export.and_then(|export| plan.exports.get(export)) else { continue };
        let Some(home) = plan.homes.get(binding.home).filter(|home| home.is_there) else { continue };
        if !(is_bound || is_begun) {
            continue;
        }
        let is_free = |resource: &Resource| {
            let mut others = plan.bound_in(home);
            others.all(|(_, other)| other.key() != resource.key() && !other.clashes(resource))
        };
        let can_bind = |entry: &&Entry| {
            let schema = plan.schemas.get(entry.schema);
            let schema = schema.filter(|schema| schema.is_there && schema.form.is_sound());
            schema.and_then(|schema| plan.resources.get(schema.resource)).is_some_and(is_free)
        };
        let can_begin = is_bound && export.is_there && !export.identity.is_empty();
        let bound: Vec<Entry> = export.entries.iter().filter(can_bind).filter(|_| can_begin).copied().collect();
        let is_all = can_begin && bound.len() == export.entries.len();
        for entry in &bound {
            if let Some(schema) = plan.schemas.get_mut(entry.schema) {
                // Somebody may have deleted it.
                schema.has_crd |= !chance.permille(40);
            }
        }
        if let Some(binding) = plan.bindings.get_mut(at) {
            binding.bound = bound;
            binding.phase = if is_all { "Bound" } else { "Binding" };
        }
    }
}

fn draw_crds(plan: &mut Plan, chance: &mut Chance) {
    for home in 0..plan.consumers {
        for resource in 0..plan.resources.len() {
            if !chance.permille(70) {
                continue;
            }
            let (Some(it), Some(place)) = (plan.resources.get(resource), plan.homes.get(home)) else { continue };
            if plan.bound_in(place).any(|(_, bound)| bound.key() == it.key()) {
                continue;
            }
            let own = plan.crds.iter().filter(|other| other.home == home && other.is_accepted);
            let mut taken = own.filter_map(|other| plan.resources.get(other.resource));
            let is_accepted =
                !taken.any(|other| other.clashes(it)) && !plan.bound_in(place).any(|(_, bound)| bound.clashes(it));
            plan.crds.push(OwnCrd { home, resource, is_accepted, is_there: true });
        }
    }
}
