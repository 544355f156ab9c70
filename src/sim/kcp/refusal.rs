//! How a server says no.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

use crate::api::Kind;

/// A `Status` of failure. Boxed, since it is large and rare.
pub(in crate::sim) type Refusal = Box<Status>;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl Cause {
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// `value` as JSON.
    pub fn invalid(field: impl Into<String>, value: impl std::fmt::Display, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {value}: {why}"), field: field.into() }
    }
}

pub(super) fn failure(code: i32, reason: &str, message: impl Into<String>) -> Refusal {
    Box::new(Status {
        code: Some(code),
        message: Some(message.into()),
        // An answer that gives no reason has none, not an empty one.
        reason: (!reason.is_empty()).then(|| reason.into()),
        status: Some("Failure".into()),
        ..Status::default()
    })
}

/// What most answers say of the object: its group, its name, and the kind as paths have it.
fn about(mut status: Refusal, group: &str, kind: &str, name: &str) -> Refusal {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    status.details =
        Some(StatusDetails { group: text(group), kind: text(kind), name: text(name), ..StatusDetails::default() });
    status
}

/// `apibindings.apis.kcp.io "name"`
fn named(kind: Kind, name: &str) -> String {
    format!("{}.{} {name:?}", kind.plural(), kind.group())
}

fn of(kind: Kind, name: &str, code: i32, reason: &str, message: String) -> Refusal {
    about(failure(code, reason, message), kind.group(), kind.plural(), name)
}

pub(super) fn not_found(kind: Kind, name: &str) -> Refusal {
    of(kind, name, 404, "NotFound", format!("{} not found", named(kind, name)))
}

/// A path that nothing serves.
pub(super) fn not_served() -> Refusal {
    failure(404, "NotFound", "the server could not find the requested resource")
}

pub(super) fn no_workspace(path: &str) -> Refusal {
    let status = failure(404, "NotFound", format!("workspaces.tenancy.kcp.io {path:?} not found"));
    about(status, "tenancy.kcp.io", "workspaces", path)
}

pub(super) fn already_exists(kind: Kind, name: &str) -> Refusal {
    of(kind, name, 409, "AlreadyExists", format!("{} already exists", named(kind, name)))
}

pub(in crate::sim) fn forbidden(kind: Kind, name: &str, why: &str) -> Refusal {
    of(kind, name, 403, "Forbidden", format!("{} is forbidden: {why}", named(kind, name)))
}

pub(super) fn not_allowed(why: &str) -> Refusal {
    failure(405, "MethodNotAllowed", why)
}

/// The object is not what the request takes it for.
pub(super) fn conflict(kind: Kind, name: &str, why: &str) -> Refusal {
    of(kind, name, 409, "Conflict", format!("Operation cannot be fulfilled on {}: {why}", named(kind, name)))
}

pub(super) fn stale(kind: Kind, name: &str) -> Refusal {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(kind, name, why)
}

/// Fields belong to others. Nothing is said of the object: that is how clients tell it from
/// [`stale`].
pub(super) fn managers_conflict(causes: Vec<Cause>) -> Refusal {
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => {
            let told = many.chunk_by(|one, next| one.message == next.message).map(|of_one| {
                let fields: String = of_one.iter().map(|cause| format!("\n- {}", cause.field)).collect();
                let owner = of_one.first().map_or("", |cause| &cause.message);
                format!("{}:{fields}", owner.replacen("conflict", "conflicts", 1))
            });
            format!("Apply failed with {} conflicts: {}", many.len(), told.collect::<Vec<_>>().join("\n"))
        }
    };
    with_causes(failure(409, "Conflict", message), causes)
}

pub(super) fn invalid(kind: Kind, name: &str, causes: Vec<Cause>) -> Refusal {
    invalid_of(kind.group(), kind.as_str(), name, causes)
}

pub(super) fn no_field_manager() -> Refusal {
    let cause = Cause::required("fieldManager", "is required for apply patch");
    invalid_of("meta.k8s.io", "PatchOptions", "", vec![cause])
}

fn invalid_of(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Refusal {
    let mut told: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    // What two layers found is a cause twice, and said once.
    told.dedup();
    let told = match told.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let message = format!("{kind}.{group} {name:?} is invalid: {told}");
    with_causes(about(failure(422, "Invalid", message), group, kind, name), causes)
}

fn with_causes(mut status: Refusal, causes: Vec<Cause>) -> Refusal {
    let causes = causes.into_iter().map(|cause| StatusCause {
        field: Some(cause.field),
        message: Some(cause.message),
        reason: Some(cause.reason.into()),
    });
    status.details.get_or_insert_default().causes = Some(causes.collect());
    status
}

pub(super) fn bad_request(why: impl Into<String>) -> Refusal {
    failure(400, "BadRequest", why)
}

/// An apply whose body does not fit the kind: an error of the server's own, by its answer.
pub(super) fn untyped(kind: Kind, name: &str, why: &str) -> Refusal {
    let what = format!("{}, Kind={}", kind.api_version(), kind.as_str());
    failure(500, "", format!("failed to create typed patch object (/{name}; {what}): {why}"))
}

/// The history that was asked for is gone; `oldest` is what is left.
pub(super) fn expired(version: u64, oldest: u64) -> Refusal {
    failure(410, "Expired", format!("too old resource version: {version} ({oldest})"))
}
