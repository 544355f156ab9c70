//! Bindings, as new as they come and as old as they get.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;

use super::exports::{EntrySpec, ExportSpec, Storage, entry_spec, version};
use super::pools::{BINDINGS, CONSUMERS, IDENTITIES, PROVIDERS, SchemaId, binding_uid, path_of};
use super::world::{ClaimSpec, PRESENT, claim_spec, metadata};
use crate::api::{
    ApiBinding, ApiBindingSpec, ApiBindingStatus, BindingReference, BoundResource, BoundSchema, Condition,
    ExportReference, Extra, List, Phase,
};

#[derive(Clone, Debug)]
pub(super) struct BindingSpec {
    pub(super) cluster: &'static str,
    pub(super) name: &'static str,
    pub(super) target: Target,
    pub(super) claims: Vec<ClaimSpec>,
    pub(super) phase: Phase,
    pub(super) bound: BoundSpec,
    pub(super) conditions: Vec<Condition>,
    pub(super) generation: Option<u8>,
    /// Minutes.
    pub(super) age: i64,
    pub(super) version: Option<u32>,
    pub(super) deleting: bool,
    /// Has status fields that this controller does not know.
    pub(super) extra: bool,
}

/// What a binding names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// One of the world's exports, counted round.
    Export {
        which: u8,
        /// By the cluster's name, or not at all where that is the binding's own.
        by_cluster: bool,
    },
    Missing,
    Nothing,
    /// Nothing any more: what it lists is of one of the world's exports.
    Lost {
        which: u8,
    },
}

/// What a binding lists as bound.
#[derive(Clone, Debug)]
pub(super) struct BoundSpec {
    /// Of what the export offers, the entries with these bits.
    of_export: u8,
    /// As they were before the schemas were created anew.
    outdated: bool,
    more: Vec<(&'static str, EntrySpec, u8)>,
    versions: Vec<&'static str>,
    extra: bool,
}

impl BindingSpec {
    /// One that has begun to bind an export, or has no reference: a neighbour without is somebody's rival too (D2).
    pub(super) fn make_sound(&mut self) {
        if self.target == Target::Missing {
            self.target = Target::Export { which: 0, by_cluster: false };
        }
        if !matches!(self.phase, Phase::Binding | Phase::Bound) {
            self.phase = Phase::Binding;
        }
    }

    pub(super) fn target<'a>(&self, exports: &'a [ExportSpec]) -> Option<&'a ExportSpec> {
        let (Target::Export { which, .. } | Target::Lost { which }) = self.target else { return None };
        exports.get(usize::from(which).checked_rem(exports.len())?)
    }

    pub(super) fn reference(&self, exports: &[ExportSpec]) -> Option<ExportReference> {
        let Target::Export { by_cluster, .. } = self.target else {
            let missing = ExportReference { path: "root:nowhere".into(), name: "birds".into() };
            return (self.target == Target::Missing).then_some(missing);
        };
        let Some(export) = self.target(exports) else {
            return Some(ExportReference { path: "root:farm".into(), name: "birds".into() });
        };
        let path = match (by_cluster, export.path) {
            (true, _) if export.cluster == self.cluster => String::new(),
            (false, Some(path)) => path_of(path.unwrap_or(export.cluster)),
            _ => export.cluster.into(),
        };
        Some(ExportReference { path: path.as_str().into(), name: export.name.into() })
    }

    pub(super) fn bound_resources(&self, exports: &[ExportSpec]) -> Vec<BoundResource> {
        let extra = || -> Extra {
            self.bound.extra.then(|| ("since".to_owned(), serde_json::json!("spring"))).into_iter().collect()
        };
        let bound = |id: SchemaId, uid: String, identity: &str, storage: Storage| BoundResource {
            group: id.resource.group.into(),
            resource: id.resource.plural.into(),
            schema: BoundSchema {
                name: id.name().into(),
                uid: uid.into(),
                identity_hash: identity.into(),
                extra: extra(),
            },
            storage_versions: match storage {
                Storage::Crd => self.bound.versions.iter().map(|version| (*version).into()).collect(),
                _ => Vec::new(),
            },
            extra: extra(),
        };
        let export = self.target(exports);
        let offered = export.into_iter().flat_map(|export| {
            let entries = export.entries.iter().take(8).zip(0u32..);
            let listed = entries.filter(|(_, at)| self.bound.of_export >> *at & 1 == 1);
            listed.map(|(entry, _)| {
                let id = export.schema_id(entry);
                let generation = entry.schema.as_ref().map_or(0, |schema| schema.generation);
                let uid = id.uid(if self.bound.outdated { generation + 1 } else { generation });
                bound(id, uid, export.identity.unwrap_or_default(), entry.storage)
            })
        });
        let more = self.bound.more.iter().map(|(cluster, entry, generation)| {
            let id = SchemaId { cluster, resource: entry.resource, revision: entry.revision };
            bound(id, id.uid(*generation), IDENTITIES.first().copied().unwrap_or_default(), entry.storage)
        });
        let mut listed: Vec<BoundResource> = Vec::new();
        for bound in offered.chain(more) {
            if !listed.iter().any(|other| other.is(&bound.group_resource())) {
                listed.push(bound);
            }
        }
        listed
    }

    pub(super) fn uid(&self) -> String {
        self.generation.map_or_else(String::new, |generation| binding_uid(self.cluster, self.name, generation))
    }

    pub(super) fn binding(&self, exports: &[ExportSpec]) -> ApiBinding {
        let mut metadata = metadata(self.cluster, self.name, Some(self.uid()).filter(|uid| !uid.is_empty()));
        metadata.resource_version = self.version.map(|version| version.to_string());
        let time = |minutes| PRESENT.checked_sub(SignedDuration::from_mins(minutes)).map(Time).ok();
        metadata.creation_timestamp = time(self.age);
        metadata.deletion_timestamp = self.deleting.then(|| time(1)).flatten();
        let unknown = || -> Extra {
            self.extra.then(|| ("mood".to_owned(), serde_json::json!({"good": true}))).into_iter().collect()
        };
        let is_new = self.phase == Phase::New;
        let export = self.target(exports).filter(|_| !is_new);
        ApiBinding {
            metadata,
            spec: ApiBindingSpec {
                reference: BindingReference { export: self.reference(exports) },
                permission_claims: self.claims.iter().map(|claim| claim.claim(exports, Some("Accepted"))).collect(),
            },
            status: ApiBindingStatus {
                api_export_cluster_name: export.map(|export| export.cluster.into()).unwrap_or_default(),
                bound_resources: if is_new { List::default() } else { self.bound_resources(exports).into() },
                phase: self.phase.clone(),
                conditions: self.conditions.clone().into(),
                applied_permission_claims: List::default(),
                export_permission_claims: match export {
                    Some(export) => export.claims.iter().map(|claim| claim.claim(&[], None)).collect(),
                    None => List::default(),
                },
                extra: unknown(),
            },
        }
    }
}

pub(super) fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        20 => (0u8..6, prop::bool::weighted(0.3)).prop_map(|(which, by_cluster)| Target::Export { which, by_cluster }),
        1 => Just(Target::Missing),
        1 => Just(Target::Nothing),
        1 => (0u8..6).prop_map(|which| Target::Lost { which }),
    ]
}

fn condition(kind: &str, status: &str, severity: &str, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: status.into(),
        severity: severity.into(),
        last_transition_time: "2026-06-01T11:00:00Z".into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// Conditions as they are found on bindings: what this controller wrote, what it would not write any
/// more, and those of others.
pub(super) fn conditions() -> BoxedStrategy<Vec<Condition>> {
    let states = |kind: &'static str| {
        let waiting = ("False", "Info", "WaitingForEstablished", "Waiting for API(s) to be established");
        let conflict = ("False", "Error", "NamingConflicts", "once upon a time");
        prop_oneof![
            3 => Just(("True", "", "", "")),
            1 => Just(waiting),
            1 => Just(conflict),
            1 => Just(("Unknown", "", "Odd", "nobody knows")),
        ]
        .prop_map(move |(status, severity, reason, message)| condition(kind, status, severity, reason, message))
    };
    let rest = vec(
        prop_oneof![
            3 => states(Condition::READY),
            3 => states(Condition::API_EXPORT_VALID),
            3 => states(Condition::BINDING_UP_TO_DATE),
            1 => states("PermissionClaimsApplied"),
            1 => states("Aardvark"),
        ],
        0..4,
    );
    (weighted(0.8, states(Condition::INITIAL_BINDING_COMPLETED)), rest)
        .prop_map(|(initial, rest)| {
            let mut conditions: Vec<Condition> = initial.into_iter().collect();
            for condition in rest {
                if !conditions.iter().any(|other| other.kind == condition.kind) {
                    conditions.push(condition);
                }
            }
            conditions
        })
        .boxed()
}

pub(super) fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        5 => Just(Phase::Bound),
        5 => Just(Phase::Binding),
        2 => Just(Phase::New),
        1 => Just(Phase::Other("Sleeping".into())),
    ]
}

fn bound_spec() -> BoxedStrategy<BoundSpec> {
    let of_export = prop_oneof![1 => Just(0u8), 2 => Just(0xff), 1 => any::<u8>()];
    let more = prop_oneof![4 => Just(0usize), 1 => Just(1), 1 => Just(2)]
        .prop_flat_map(|count| vec((select(&PROVIDERS), entry_spec(), 0u8..2), count));
    let versions = prop_oneof![4 => Just(vec!["v1"]), 1 => Just(vec!["v0", "v1"]), 1 => Just(vec![])];
    (of_export, prop::bool::weighted(0.1), more, versions, prop::bool::weighted(0.1))
        .prop_map(|(of_export, outdated, more, versions, extra)| BoundSpec {
            of_export,
            outdated,
            more,
            versions,
            extra,
        })
        .boxed()
}

pub(super) fn binding_spec() -> BoxedStrategy<BindingSpec> {
    let generation = prop_oneof![12 => Just(Some(0u8)), 2 => Just(Some(1)), 1 => Just(None)];
    let meta = (generation, 0i64..4, weighted(0.97, version()), prop::bool::weighted(0.05), prop::bool::weighted(0.1));
    let status = (phase(), bound_spec(), conditions());
    (select(&CONSUMERS), select(&BINDINGS), target(), vec(claim_spec(), 0..2), status, meta)
        .prop_map(
            |(
                cluster,
                name,
                target,
                claims,
                (phase, bound, conditions),
                (generation, age, version, deleting, extra),
            )| {
                let conditions = if phase == Phase::New { Vec::new() } else { conditions };
                BindingSpec {
                    cluster,
                    name,
                    target,
                    claims,
                    phase,
                    bound,
                    conditions,
                    generation,
                    age,
                    version,
                    deleting,
                    extra,
                }
            },
        )
        .boxed()
}

/// An APIBinding: of any phase, with what it lists as bound, conditions and claims.
pub fn binding() -> BoxedStrategy<ApiBinding> {
    (vec(super::exports::export_spec(), 0..3), binding_spec())
        .prop_map(|(exports, spec)| spec.binding(&exports))
        .boxed()
}
