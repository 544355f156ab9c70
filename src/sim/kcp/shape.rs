//! What objects of the six kinds look like: which fields there are, how lists are told apart, what
//! is filled in.
//!
//! It is all that server-side apply, pruning, defaults and validation have to know of a kind.

use serde_json::{Value, json};

use crate::api::Kind;

/// The form of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string.
    Text,
    /// A string that must not be empty.
    Filled,
    /// A time, kept in whole seconds.
    Time,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An object whose fields have owners of their own.
    Object(&'static [Field]),
    /// Named entries of one form, each with owners of its own.
    Map(&'static Shape),
    /// A value that is owned and replaced whole.
    Whole(&'static Shape),
    /// A list that is owned and replaced whole.
    List(&'static Shape),
    /// Strings, each once, each with owners of its own.
    Set,
    /// Entries that are told apart by these fields.
    Keyed(&'static [&'static str], &'static Shape),
    /// Whatever it is, owned and replaced whole.
    Any,
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    /// Kept by the server: nobody owns it, and what a request says of it is not taken.
    pub system: bool,
    pub default: Option<fn() -> Value>,
}

impl Field {
    const fn or(mut self, default: fn() -> Value) -> Self {
        self.default = Some(default);
        self
    }
}

const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false, system: false, default: None }
}

const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true, system: false, default: None }
}

const fn system(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false, system: true, default: None }
}

impl Shape {
    /// The field of this name. Maps have one form for all.
    pub fn field(&self, name: &str) -> Option<&Shape> {
        match self {
            Self::Object(fields) => fields.iter().find(|field| field.name == name).map(|field| &field.shape),
            Self::Map(each) => Some(each),
            _ => None,
        }
    }

    /// What a field is if nothing is said of it.
    pub fn default(&self, name: &str) -> Option<Value> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|field| field.name == name)?.default.map(|default| default())
    }

    pub fn is_system(&self, name: &str) -> bool {
        matches!(self, Self::Object(fields) if fields.iter().any(|field| field.system && field.name == name))
    }

    /// True for what has owners below it.
    pub fn is_granular(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Map(_) | Self::Set | Self::Keyed(..))
    }
}

/// The form of a kind's objects.
pub(super) fn of(kind: Kind) -> &'static Shape {
    match kind {
        Kind::ApiBinding => &BINDING,
        Kind::ApiExport => &EXPORT,
        Kind::ApiResourceSchema => &SCHEMA,
        Kind::ApiConversion => &CONVERSION,
        Kind::LogicalCluster => &LOGICAL_CLUSTER,
        Kind::Crd => &CRD,
    }
}

/// True if the status is a subresource: then writes to the object leave it alone, and it is the only
/// thing that writes to the subresource change.
pub(super) fn has_status(kind: Kind) -> bool {
    !matches!(kind, Kind::ApiResourceSchema | Kind::ApiConversion)
}

/// True if rules between fields exist, which a server does not look at where the fields themselves
/// are wrong, and says so.
pub(super) fn has_rules(kind: Kind) -> bool {
    matches!(kind, Kind::ApiBinding | Kind::ApiExport | Kind::ApiResourceSchema)
}

const TEXTS: Shape = Shape::List(&Shape::Text);
const TEXT_MAP: Shape = Shape::Map(&Shape::Text);

const METADATA: Field = may(
    "metadata",
    Shape::Object(&[
        may("annotations", TEXT_MAP),
        may("labels", TEXT_MAP),
        may("finalizers", Shape::Set),
        may("ownerReferences", Shape::Keyed(&["uid"], &Shape::Any)),
        may("generateName", Shape::Text),
        system("name", Shape::Text),
        system("namespace", Shape::Text),
        system("uid", Shape::Text),
        system("resourceVersion", Shape::Text),
        system("generation", Shape::Integer),
        system("creationTimestamp", Shape::Text),
        system("deletionTimestamp", Shape::Text),
        system("deletionGracePeriodSeconds", Shape::Integer),
        system("selfLink", Shape::Text),
        system("managedFields", Shape::Any),
    ]),
);

const fn object(spec: Field, status: Field) -> [Field; 5] {
    [system("apiVersion", Shape::Text), system("kind", Shape::Text), METADATA, spec, status]
}

/// For kinds without one: never there.
const NO_STATUS: Field = system("status", Shape::Any);

const CONDITIONS: Field = may(
    "conditions",
    Shape::List(&Shape::Object(&[
        must("type", Shape::Text),
        must("status", Shape::Text),
        must("lastTransitionTime", Shape::Time),
        may("severity", Shape::Text),
        may("reason", Shape::Text),
        may("message", Shape::Text),
    ])),
);

const SELECTOR: Shape = Shape::Whole(&Shape::Object(&[
    may("matchAll", Shape::Boolean),
    may("matchLabels", TEXT_MAP),
    may(
        "matchExpressions",
        Shape::List(&Shape::Object(&[must("key", Shape::Text), must("operator", Shape::Text), may("values", TEXTS)])),
    ),
]));

const CLAIM_GROUP: Field = may("group", Shape::Text).or(|| json!(""));
const CLAIM_IDENTITY: Field = may("identityHash", Shape::Text).or(|| json!(""));

/// A claim as the export makes it.
const CLAIM: Shape = Shape::Object(&[
    CLAIM_GROUP,
    must("resource", Shape::Text),
    must("verbs", Shape::Set),
    CLAIM_IDENTITY,
    may("defaultSelector", SELECTOR),
]);

/// A claim as it is in force.
const APPLIED_CLAIM: Shape = Shape::Object(&[
    CLAIM_GROUP,
    must("resource", Shape::Text),
    must("verbs", Shape::Set),
    CLAIM_IDENTITY,
    may("defaultSelector", SELECTOR),
    must("selector", SELECTOR),
]);

/// A claim as the consumer answers it.
const ANSWERED_CLAIM: Shape = Shape::Object(&[
    CLAIM_GROUP,
    must("resource", Shape::Text),
    must("verbs", Shape::Set),
    CLAIM_IDENTITY,
    may("defaultSelector", SELECTOR),
    must("selector", SELECTOR),
    must("state", Shape::OneOf(&["Accepted", "Rejected"])),
]);

const CLAIM_KEYS: &[&str] = &["group", "identityHash", "resource"];

static BINDING: Shape = Shape::Object(&object(
    must(
        "spec",
        Shape::Object(&[
            must(
                "reference",
                Shape::Object(&[may("export", Shape::Object(&[must("name", Shape::Text), may("path", Shape::Text)]))]),
            ),
            may("permissionClaims", Shape::Keyed(CLAIM_KEYS, &ANSWERED_CLAIM)),
        ]),
    ),
    may(
        "status",
        Shape::Object(&[
            may("apiExportClusterName", Shape::Text),
            may("phase", Shape::OneOf(&["", "Binding", "Bound"])),
            CONDITIONS,
            may("appliedPermissionClaims", Shape::Keyed(CLAIM_KEYS, &APPLIED_CLAIM)),
            may("exportPermissionClaims", Shape::List(&CLAIM)),
            may(
                "boundResources",
                Shape::Keyed(
                    &["group", "resource"],
                    &Shape::Object(&[
                        must("group", Shape::Text),
                        must("resource", Shape::Text),
                        must(
                            "schema",
                            Shape::Object(&[
                                must("name", Shape::Filled),
                                must("UID", Shape::Filled),
                                must("identityHash", Shape::Filled),
                            ]),
                        ),
                        may("storageVersions", Shape::Set),
                    ]),
                ),
            ),
        ]),
    ),
));

static EXPORT: Shape = Shape::Object(&object(
    may(
        "spec",
        Shape::Object(&[
            may(
                "identity",
                Shape::Object(&[may(
                    "secretRef",
                    Shape::Whole(&Shape::Object(&[may("name", Shape::Text), may("namespace", Shape::Text)])),
                )]),
            ),
            may("maximalPermissionPolicy", Shape::Object(&[may("local", Shape::Object(&[]))])),
            may("permissionClaims", Shape::Keyed(&["group", "resource"], &CLAIM)),
            may(
                "resources",
                Shape::Keyed(
                    &["group", "name"],
                    &Shape::Object(&[
                        must("group", Shape::Text),
                        must("name", Shape::Text),
                        must("schema", Shape::Text),
                        may("storage", STORAGE).or(|| json!({"crd": {}})),
                    ]),
                ),
            ),
        ]),
    ),
    may(
        "status",
        Shape::Object(&[
            CONDITIONS,
            may("identityHash", Shape::Text),
            may("virtualWorkspaces", Shape::List(&Shape::Object(&[must("url", Shape::Filled)]))),
        ]),
    ),
));

const STORAGE: Shape = Shape::Object(&[
    may("crd", Shape::Object(&[])),
    may(
        "virtual",
        Shape::Object(&[
            must("identityHash", Shape::Text),
            must(
                "reference",
                Shape::Whole(&Shape::Object(&[
                    may("apiGroup", Shape::Text),
                    must("kind", Shape::Text),
                    must("name", Shape::Text),
                ])),
            ),
        ]),
    ),
]);

const NAMES: Shape = Shape::Object(&[
    must("plural", Shape::Text),
    must("kind", Shape::Text),
    may("singular", Shape::Text),
    may("listKind", Shape::Text),
    may("shortNames", TEXTS),
    may("categories", TEXTS),
]);

static SCHEMA: Shape = Shape::Object(&object(
    may(
        "spec",
        Shape::Object(&[
            must("group", Shape::Text),
            must("names", NAMES),
            must("scope", Shape::OneOf(&["Cluster", "Namespaced"])),
            may("nameValidation", Shape::OneOf(&["DNS1123Subdomain", "PathSegmentName"]))
                .or(|| json!("DNS1123Subdomain")),
            may(
                "conversion",
                Shape::Object(&[
                    must("strategy", Shape::OneOf(&["None", "Webhook"])),
                    may(
                        "webhook",
                        Shape::Object(&[
                            may(
                                "clientConfig",
                                Shape::Object(&[may("caBundle", Shape::Text), may("url", Shape::Text)]),
                            ),
                            must("conversionReviewVersions", TEXTS),
                        ]),
                    ),
                ]),
            ),
            must(
                "versions",
                Shape::Keyed(
                    &["name"],
                    &Shape::Object(&[
                        must("name", Shape::Filled),
                        must("served", Shape::Boolean).or(|| json!(true)),
                        must("storage", Shape::Boolean),
                        must("schema", Shape::Any),
                        may("deprecated", Shape::Boolean),
                        may("deprecationWarning", Shape::Text),
                        may(
                            "subresources",
                            Shape::Object(&[may("status", Shape::Object(&[])), may("scale", Shape::Any)]),
                        ),
                        may("selectableFields", Shape::List(&Shape::Any)),
                        may("additionalPrinterColumns", Shape::Keyed(&["name"], &COLUMN)),
                    ]),
                ),
            ),
        ]),
    ),
    NO_STATUS,
));

const COLUMN: Shape = Shape::Object(&[
    must("name", Shape::Text),
    must("type", Shape::Text),
    must("jsonPath", Shape::Text),
    may("description", Shape::Text),
    may("format", Shape::Text),
    may("priority", Shape::Integer),
]);

static CONVERSION: Shape = Shape::Object(&object(
    must(
        "spec",
        Shape::Object(&[must(
            "conversions",
            Shape::Keyed(
                &["from", "to"],
                &Shape::Object(&[
                    must("from", Shape::Filled),
                    must("to", Shape::Filled),
                    may("preserve", TEXTS),
                    must(
                        "rules",
                        Shape::Keyed(
                            &["destination"],
                            &Shape::Object(&[
                                must("destination", Shape::Filled),
                                must("field", Shape::Filled),
                                may("transformation", Shape::Text),
                            ]),
                        ),
                    ),
                ]),
            ),
        )]),
    ),
    NO_STATUS,
));

static LOGICAL_CLUSTER: Shape = Shape::Object(&object(
    may(
        "spec",
        Shape::Object(&[
            may(
                "createdBy",
                Shape::Object(&[
                    may("extra", Shape::Map(&TEXTS)),
                    may("groups", TEXTS),
                    may("uid", Shape::Text),
                    may("username", Shape::Text),
                ]),
            ),
            may("directlyDeletable", Shape::Boolean).or(|| json!(false)),
            may("initializers", TEXTS),
            may("terminators", TEXTS),
            may(
                "owner",
                Shape::Object(&[
                    must("apiVersion", Shape::Text),
                    must("cluster", Shape::Filled),
                    must("name", Shape::Filled),
                    must("resource", Shape::Filled),
                    must("uid", Shape::Text),
                    may("namespace", Shape::Text),
                ]),
            ),
        ]),
    )
    .or(|| json!({})),
    may(
        "status",
        Shape::Object(&[
            may("URL", Shape::Text),
            CONDITIONS,
            may("initializers", TEXTS),
            may("terminators", TEXTS),
            may(
                "phase",
                Shape::OneOf(&[
                    "Scheduling",
                    "Initializing",
                    "Ready",
                    "Unavailable",
                    "Inactive",
                    "Terminating",
                    "Deleting",
                ]),
            )
            .or(|| json!("Scheduling")),
        ]),
    )
    .or(|| json!({})),
));

/// A CRD is built in: its conditions are told apart by type, its versions are one list.
static CRD: Shape = Shape::Object(&object(
    must(
        "spec",
        Shape::Object(&[
            must("group", Shape::Text),
            must("names", NAMES),
            must("scope", Shape::Text),
            must("versions", Shape::List(&Shape::Any)),
            may("preserveUnknownFields", Shape::Boolean),
            may(
                "conversion",
                Shape::Object(&[
                    must("strategy", Shape::Text),
                    may(
                        "webhook",
                        Shape::Object(&[
                            may(
                                "clientConfig",
                                Shape::Object(&[
                                    may("caBundle", Shape::Text),
                                    may("url", Shape::Text),
                                    may("service", Shape::Any),
                                ]),
                            ),
                            must("conversionReviewVersions", TEXTS),
                        ]),
                    ),
                ]),
            )
            .or(|| json!({"strategy": "None"})),
        ]),
    ),
    may(
        "status",
        Shape::Object(&[
            may("acceptedNames", NAMES),
            may("storedVersions", TEXTS),
            may("observedGeneration", Shape::Integer),
            may(
                "conditions",
                Shape::Keyed(
                    &["type"],
                    &Shape::Object(&[
                        must("type", Shape::Text),
                        must("status", Shape::Text),
                        may("lastTransitionTime", Shape::Time),
                        may("reason", Shape::Text),
                        may("message", Shape::Text),
                        may("observedGeneration", Shape::Integer),
                    ]),
                ),
            ),
        ]),
    ),
));
