//! Exports, the schemas that they name, and the CRDs that are made of them.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionNames, CustomResourceSubresourceStatus, CustomResourceSubresources, SelectableField,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::pools::{CONSUMERS, EXPORTS, IDENTITIES, PROVIDERS, RESOURCES, Resource, SchemaId, path_of};
use super::world::{ClaimSpec, claim_spec, metadata};
use crate::api::{
    ApiConversion, ApiExport, ApiExportSpec, ApiExportStatus, ApiResourceSchema, ApiResourceSchemaSpec, CrdStorage,
    ExportedResource, Json, ObservedCondition, ObservedCrd, ObservedCrdSpec, ObservedCrdStatus, PATH_ANNOTATION,
    ResourceNames, ResourceStorage, SchemaConversion, SchemaVersion, VirtualStorage, WebhookClientConfig,
    WebhookConversion,
};

/// Which copies of an object there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Copies {
    Local,
    Global,
    Both,
}

pub(super) fn copies() -> impl Strategy<Value = Copies> {
    prop_oneof![4 => Just(Copies::Local), 2 => Just(Copies::Global), 2 => Just(Copies::Both)]
}

#[derive(Clone, Debug)]
pub(super) struct ExportSpec {
    pub(super) cluster: &'static str,
    pub(super) name: &'static str,
    /// `Some(None)`: the path of the cluster itself; another one makes exports ambiguous.
    pub(super) path: Option<Option<&'static str>>,
    pub(super) identity: Option<&'static str>,
    pub(super) entries: Vec<EntrySpec>,
    pub(super) claims: Vec<ClaimSpec>,
    pub(super) copies: Copies,
    /// A global copy that is behind has no resources yet.
    pub(super) behind: bool,
    pub(super) version: u32,
}

#[derive(Clone, Debug)]
pub(super) struct EntrySpec {
    pub(super) resource: Resource,
    pub(super) revision: u8,
    pub(super) storage: Storage,
    /// The entry's group is not that of the schema.
    pub(super) mislabelled: bool,
    pub(super) schema: Option<SchemaSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Storage {
    Crd,
    Virtual,
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct SchemaSpec {
    pub(super) form: SchemaForm,
    pub(super) generation: u8,
    pub(super) copies: Copies,
    pub(super) converted: bool,
    pub(super) version: u32,
    pub(super) crd: Option<CrdSpec>,
}

/// What can be right and wrong with a schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SchemaForm {
    Plain,
    Rich,
    ConvertedByNone,
    ConvertedByWebhook,
    LacksConversion,
    LacksWebhook,
    LacksClientConfig,
    WrongType,
    LacksSchema,
    LacksUid,
}

#[derive(Clone, Debug)]
pub(super) struct CrdSpec {
    pub(super) state: CrdState,
    pub(super) stored: Vec<&'static str>,
    pub(super) uid: Option<u8>,
    /// Without the annotations that tell of which schema it is made.
    pub(super) plain: bool,
    pub(super) version: u32,
}

/// How far the server has come with a CRD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CrdState {
    Serving,
    New,
    NamesAccepted,
    NamesRefused,
    Terminating,
}

impl ExportSpec {
    /// One that can be bound.
    pub(super) fn make_sound(&mut self) {
        let [identity, ..] = IDENTITIES;
        self.identity = self.identity.or(Some(identity));
        self.path = Some(None);
        self.behind = false;
        self.entries.retain(|entry| entry.schema.is_some());
        for schema in self.entries.iter_mut().filter_map(|entry| entry.schema.as_mut()) {
            if !matches!(schema.form, SchemaForm::Rich | SchemaForm::ConvertedByNone) {
                schema.form = SchemaForm::Plain;
            }
        }
    }

    pub(super) fn schema_id(&self, entry: &EntrySpec) -> SchemaId {
        SchemaId { cluster: self.cluster, resource: entry.resource, revision: entry.revision }
    }

    pub(super) fn export(&self) -> ApiExport {
        let mut metadata = metadata(self.cluster, self.name, Some(format!("export-{}-{}", self.cluster, self.name)));
        metadata.resource_version = Some(self.version.to_string());
        if let (Some(path), Some(annotations)) = (self.path, &mut metadata.annotations) {
            annotations.insert(PATH_ANNOTATION.into(), path_of(path.unwrap_or(self.cluster)));
        }
        let resources = self.entries.iter().map(|entry| ExportedResource {
            name: entry.resource.plural.into(),
            group: if entry.mislabelled { "other.example".into() } else { entry.resource.group.into() },
            schema: self.schema_id(entry).name().into(),
            storage: ResourceStorage {
                crd: (entry.storage == Storage::Crd).then_some(CrdStorage {}),
                r#virtual: (entry.storage == Storage::Virtual).then(VirtualStorage::default),
            },
        });
        ApiExport {
            metadata,
            spec: ApiExportSpec {
                resources: resources.collect(),
                permission_claims: self.claims.iter().map(|claim| claim.claim(&[], None)).collect(),
            },
            status: ApiExportStatus {
                identity_hash: self.identity.unwrap_or_default().into(),
                ..ApiExportStatus::default()
            },
        }
    }
}

impl SchemaSpec {
    pub(super) fn uid(&self, id: SchemaId) -> String {
        if self.form == SchemaForm::LacksUid { String::new() } else { id.uid(self.generation) }
    }

    pub(super) fn schema(&self, id: SchemaId) -> ApiResourceSchema {
        let uid = Some(self.uid(id)).filter(|uid| !uid.is_empty());
        let mut metadata = metadata(id.cluster, &id.name(), uid);
        metadata.resource_version = Some(self.version.to_string());
        let is_rich = self.form == SchemaForm::Rich;
        if let (true, Some(annotations)) = (is_rich, &mut metadata.annotations) {
            annotations.insert("api-approved.kubernetes.io".into(), "unapproved, an experiment".into());
        }
        let names = id.resource.names();
        ApiResourceSchema {
            metadata,
            spec: ApiResourceSchemaSpec {
                group: id.resource.group.into(),
                names: CustomResourceDefinitionNames {
                    plural: names.plural.to_string(),
                    singular: Some(names.singular.to_string()).filter(|name| !name.is_empty()),
                    short_names: Some(names.short_names.iter().map(ToString::to_string).collect()),
                    kind: names.kind.to_string(),
                    list_kind: Some(names.list_kind.to_string()).filter(|name| !name.is_empty()),
                    categories: None,
                },
                scope: "Namespaced".into(),
                versions: self.versions(),
                name_validation: if is_rich { "PathSegmentName".into() } else { "".into() },
                conversion: self.conversion(),
            },
        }
    }

    fn versions(&self) -> Vec<SchemaVersion> {
        let raw = match self.form {
            SchemaForm::WrongType => Some(Json::of(&serde_json::json!({"type": "object", "required": 5}))),
            SchemaForm::LacksSchema => None,
            _ => Some(Json::of(&serde_json::json!({"type": "object"}))),
        };
        let rich = self.form == SchemaForm::Rich;
        let version = |name: &str| SchemaVersion {
            name: name.into(),
            served: true,
            storage: name == "v1",
            deprecated: rich,
            deprecation_warning: rich.then(|| "old".into()),
            schema: raw.clone(),
            subresources: CustomResourceSubresources {
                status: rich.then(CustomResourceSubresourceStatus::default),
                scale: None,
            },
            selectable_fields: match rich {
                true => vec![SelectableField { json_path: ".spec.colour".into() }],
                false => Vec::new(),
            },
            ..SchemaVersion::default()
        };
        match self.form {
            SchemaForm::ConvertedByNone
            | SchemaForm::ConvertedByWebhook
            | SchemaForm::LacksConversion
            | SchemaForm::LacksWebhook
            | SchemaForm::LacksClientConfig => vec![version("v1"), version("v2")],
            _ => vec![version("v1")],
        }
    }

    fn conversion(&self) -> Option<SchemaConversion> {
        let by = |webhook| Some(SchemaConversion { strategy: "Webhook".into(), webhook });
        let webhook =
            |client_config| Some(WebhookConversion { client_config, conversion_review_versions: vec!["v1".into()] });
        match self.form {
            SchemaForm::ConvertedByNone => Some(SchemaConversion { strategy: "None".into(), webhook: None }),
            SchemaForm::ConvertedByWebhook => by(webhook(Some(WebhookClientConfig::default()))),
            SchemaForm::LacksWebhook => by(None),
            SchemaForm::LacksClientConfig => by(webhook(None)),
            _ => None,
        }
    }

    pub(super) fn conversion_object(&self, id: SchemaId) -> ApiConversion {
        let mut metadata = metadata(id.cluster, &id.name(), None);
        metadata.resource_version = Some(self.version.to_string());
        ApiConversion { metadata }
    }
}

impl CrdSpec {
    /// The bound CRD of a schema.
    pub(super) fn bound(&self, id: SchemaId, uid: &str) -> ObservedCrd {
        let mut crd = self.crd("system:bound-crds", uid, id.resource);
        if let (false, Some(annotations)) = (self.plain, &mut crd.metadata.annotations) {
            annotations.insert("apis.kcp.io/bound-crd".into(), String::new());
            annotations.insert("apis.kcp.io/schema-cluster".into(), id.cluster.into());
            annotations.insert("apis.kcp.io/schema-name".into(), id.name());
        }
        crd
    }

    /// A CRD of that name.
    pub(super) fn crd(&self, cluster: &str, name: &str, resource: Resource) -> ObservedCrd {
        let uid = self.uid.map(|generation| format!("crd-{cluster}-{name}-{generation}"));
        ObservedCrd {
            metadata: ObjectMeta { resource_version: Some(self.version.to_string()), ..metadata(cluster, name, uid) },
            spec: ObservedCrdSpec { group: resource.group.into(), names: resource.names() },
            status: self.state.status(resource, &self.stored),
        }
    }
}

impl CrdState {
    pub(super) fn status(self, resource: Resource, stored: &[&str]) -> ObservedCrdStatus {
        let conditions: &[(&str, &str)] = match self {
            Self::New => &[],
            Self::NamesAccepted => &[("NamesAccepted", "True")],
            Self::NamesRefused => &[("NamesAccepted", "False"), ("Established", "False")],
            Self::Serving => &[("NamesAccepted", "True"), ("Established", "True")],
            Self::Terminating => &[("NamesAccepted", "True"), ("Established", "True"), ("Terminating", "True")],
        };
        let names = resource.names();
        ObservedCrdStatus {
            accepted_names: match self {
                Self::New => ResourceNames::default(),
                // What could be granted is granted.
                Self::NamesRefused => ResourceNames { kind: names.kind, ..ResourceNames::default() },
                _ => names,
            },
            conditions: conditions
                .iter()
                .map(|(kind, status)| ObservedCondition { kind: (*kind).into(), status: (*status).into() })
                .collect(),
            stored_versions: stored.iter().map(|version| (*version).into()).collect(),
        }
    }
}

/// Resource versions of a world's objects.
pub(super) fn version() -> impl Strategy<Value = u32> {
    100u32..120
}

pub(super) fn crd_spec() -> BoxedStrategy<CrdSpec> {
    let state = prop_oneof![
        10 => Just(CrdState::Serving),
        3 => Just(CrdState::New),
        2 => Just(CrdState::NamesAccepted),
        1 => Just(CrdState::NamesRefused),
        1 => Just(CrdState::Terminating),
    ];
    let stored = prop_oneof![3 => Just(vec!["v1"]), 1 => Just(vec![]), 1 => Just(vec!["v2", "v1"])];
    // The same uid twice is no rule's fault, and orders by cluster and name.
    let uid = prop_oneof![8 => (0u8..2).prop_map(Some), 1 => Just(None)];
    (state, stored, uid, prop::bool::weighted(0.1), version())
        .prop_map(|(state, stored, uid, plain, version)| CrdSpec { state, stored, uid, plain, version })
        .boxed()
}

pub(super) fn schema_form() -> impl Strategy<Value = SchemaForm> {
    prop_oneof![
        16 => Just(SchemaForm::Plain),
        2 => Just(SchemaForm::Rich),
        1 => Just(SchemaForm::ConvertedByNone),
        1 => Just(SchemaForm::ConvertedByWebhook),
        1 => select(&[
            SchemaForm::LacksConversion,
            SchemaForm::LacksWebhook,
            SchemaForm::LacksClientConfig,
            SchemaForm::WrongType,
            SchemaForm::LacksSchema,
            SchemaForm::LacksUid,
        ]),
    ]
}

pub(super) fn schema_spec() -> BoxedStrategy<SchemaSpec> {
    let generation = prop_oneof![4 => Just(0u8), 1 => Just(1)];
    (schema_form(), generation, copies(), prop::bool::weighted(0.1), version(), weighted(0.6, crd_spec()))
        .prop_map(|(form, generation, copies, converted, version, crd)| SchemaSpec {
            form,
            generation,
            copies,
            converted,
            version,
            crd,
        })
        .boxed()
}

pub(super) fn entry_spec() -> BoxedStrategy<EntrySpec> {
    let revision = prop_oneof![6 => Just(1u8), 1 => Just(2)];
    let storage = prop_oneof![6 => Just(Storage::Crd), 1 => Just(Storage::Virtual), 1 => Just(Storage::Nothing)];
    (resource(), revision, storage, prop::bool::weighted(0.05), weighted(0.95, schema_spec()))
        .prop_map(|(resource, revision, storage, mislabelled, schema)| EntrySpec {
            resource,
            revision,
            storage,
            mislabelled,
            schema,
        })
        .boxed()
}

/// The first ones more often, so that bindings want the same.
pub(super) fn resource() -> impl Strategy<Value = Resource> {
    let [first, second, ..] = RESOURCES;
    prop_oneof![3 => Just(first), 2 => Just(second), 6 => select(&RESOURCES)]
}

pub(super) fn path() -> impl Strategy<Value = Option<Option<&'static str>>> {
    prop_oneof![8 => Just(Some(None)), 2 => Just(None), 1 => select(&PROVIDERS).prop_map(|other| Some(Some(other)))]
}

pub(super) fn identity() -> impl Strategy<Value = Option<&'static str>> {
    weighted(0.92, select(&IDENTITIES))
}

pub(super) fn export_spec() -> BoxedStrategy<ExportSpec> {
    let place = (select(&PROVIDERS), select(&EXPORTS), path(), copies(), prop::bool::weighted(0.1));
    (place, identity(), vec(entry_spec(), 0..4), vec(claim_spec(), 0..2), version())
        .prop_map(|((cluster, name, path, copies, behind), identity, entries, claims, version)| ExportSpec {
            cluster,
            name,
            path,
            identity,
            entries,
            claims,
            copies,
            behind,
            version,
        })
        .boxed()
}

/// An APIExport: with and without its path, an identity, resources and claims.
pub fn export() -> BoxedStrategy<ApiExport> {
    export_spec().prop_map(|spec| spec.export()).boxed()
}

/// An APIResourceSchema: of one version or two, with every sort of conversion, and with what makes
/// its bound CRD impossible.
pub fn schema() -> BoxedStrategy<ApiResourceSchema> {
    (select(&PROVIDERS), entry_spec(), schema_spec())
        .prop_map(|(cluster, entry, spec)| {
            spec.schema(SchemaId { cluster, resource: entry.resource, revision: entry.revision })
        })
        .boxed()
}

/// An APIConversion, of the name of some schema.
pub fn conversion() -> BoxedStrategy<ApiConversion> {
    (select(&PROVIDERS), entry_spec(), schema_spec())
        .prop_map(|(cluster, entry, spec)| {
            spec.conversion_object(SchemaId { cluster, resource: entry.resource, revision: entry.revision })
        })
        .boxed()
}

/// The bound CRD of some schema, in any state.
pub fn bound_crd() -> BoxedStrategy<ObservedCrd> {
    (select(&PROVIDERS), entry_spec(), 0u8..2, crd_spec())
        .prop_map(|(cluster, entry, generation, crd)| {
            let id = SchemaId { cluster, resource: entry.resource, revision: entry.revision };
            crd.bound(id, &id.uid(generation))
        })
        .boxed()
}

/// A CRD of a workspace, and how it is named.
#[derive(Clone, Debug)]
pub(super) struct OwnCrdSpec {
    pub(super) cluster: &'static str,
    resource: Resource,
    /// Not named as its names and group say.
    odd: bool,
    pub(super) crd: CrdSpec,
}

impl OwnCrdSpec {
    pub(super) fn crd(&self) -> ObservedCrd {
        let name = self.resource.key().crd_name();
        self.crd.crd(self.cluster, if self.odd { "odd" } else { &name }, self.resource)
    }
}

pub(super) fn own_crd_spec() -> BoxedStrategy<OwnCrdSpec> {
    (select(&CONSUMERS), resource(), prop::bool::weighted(0.1), crd_spec())
        .prop_map(|(cluster, resource, odd, crd)| OwnCrdSpec {
            cluster,
            resource,
            odd,
            crd: CrdSpec { plain: true, ..crd },
        })
        .boxed()
}

/// A CRD of a workspace, in any state.
pub fn crd() -> BoxedStrategy<ObservedCrd> {
    own_crd_spec().prop_map(|spec| spec.crd()).boxed()
}
