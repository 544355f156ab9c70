//! APIResourceSchema: the schema of one resource, which never changes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionNames, CustomResourceSubresources, SelectableField,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::strict::{list, null, optional};
use super::wire::{Json, is_default, kind};
use super::{GroupResource, Text};

/// The schema of one exported resource (`apis.kcp.io/v1alpha1`). It cannot be changed, only
/// deleted and created anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiResourceSchema {
    /// Standard metadata; the logical cluster is its annotation `kcp.io/cluster`.
    pub metadata: ObjectMeta,
    /// The schema.
    pub spec: ApiResourceSchemaSpec,
}

kind!(ApiResourceSchema, "APIResourceSchema", "apiresourceschemas", "apis.kcp.io", "v1alpha1", {
    spec: ApiResourceSchemaSpec
});

impl ApiResourceSchema {
    /// The resource that this is the schema of.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.spec.group, &self.spec.names.plural)
    }
}

/// The schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResourceSchemaSpec {
    /// The resource's group; empty for the core group.
    #[serde(default, deserialize_with = "null")]
    pub group: Text,
    /// The resource's names.
    #[serde(default, deserialize_with = "null")]
    pub names: CustomResourceDefinitionNames,
    /// `Cluster` or `Namespaced`.
    #[serde(default, deserialize_with = "null")]
    pub scope: Text,
    /// The versions in which the resource is served.
    #[serde(default, deserialize_with = "list")]
    pub versions: Vec<SchemaVersion>,
    /// How objects' names are checked; empty for the usual way.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub name_validation: Text,
    /// How objects are converted between versions.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub conversion: Option<SchemaConversion>,
}

/// One version of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchemaVersion {
    /// The version's name.
    #[serde(default, deserialize_with = "null")]
    pub name: Text,
    /// Whether it is served.
    #[serde(default, deserialize_with = "null")]
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(default, deserialize_with = "null")]
    pub storage: bool,
    /// Whether clients are warned of it.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub deprecated: bool,
    /// What they are told.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deprecation_warning: Option<Text>,
    /// The OpenAPI schema, raw: whoever makes a CRD of it finds out whether it is one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schema: Option<Json>,
    /// Which subresources there are.
    #[serde(default, deserialize_with = "null")]
    pub subresources: CustomResourceSubresources,
    /// What `kubectl get` shows.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
    /// Which fields field selectors may name.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub selectable_fields: Vec<SelectableField>,
}

/// How objects are converted between versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchemaConversion {
    /// `None` or `Webhook`.
    #[serde(default, deserialize_with = "null")]
    pub strategy: Text,
    /// The webhook.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub webhook: Option<WebhookConversion>,
}

/// A webhook that converts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookConversion {
    /// Where it is.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub client_config: Option<WebhookClientConfig>,
    /// The versions of the review that it understands.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub conversion_review_versions: Vec<Text>,
}

/// Where a webhook is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookClientConfig {
    /// Its address.
    #[serde(default, deserialize_with = "null")]
    pub url: Text,
    /// The certificates to trust, in base64.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub ca_bundle: Text,
}
