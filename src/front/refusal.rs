//! How the front says no, where the simulated server was not even asked.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

use super::ask::Ask;
use super::reply::Reply;

pub(super) fn status(code: i32, reason: &str, message: impl Into<String>) -> Box<Status> {
    Box::new(Status {
        code: Some(code),
        message: Some(message.into()),
        reason: (!reason.is_empty()).then(|| reason.into()),
        status: Some("Failure".into()),
        ..Status::default()
    })
}

fn refused(code: i32, reason: &str, message: impl Into<String>) -> Reply {
    Reply::Status(status(code, reason, message))
}

/// The same, of the object that is asked for.
fn about(mut status: Box<Status>, ask: &Ask) -> Reply {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    status.details = Some(StatusDetails {
        group: text(&ask.group),
        kind: text(&ask.resource),
        name: text(&ask.name),
        ..StatusDetails::default()
    });
    Reply::Status(status)
}

/// `apibindings.apis.kcp.io`
fn resource(ask: &Ask) -> String {
    if ask.group.is_empty() { ask.resource.to_string() } else { format!("{}.{}", ask.resource, ask.group) }
}

pub(super) fn bad_request(why: impl Into<String>) -> Reply {
    refused(400, "BadRequest", why)
}

/// A path that nothing serves.
pub(super) fn nowhere() -> Reply {
    Reply::Text(404, "404 page not found\n".into())
}

/// A path without a logical cluster; the server shows what it made of it.
pub(super) fn homeless(ask: &Ask) -> Reply {
    let is_resource = !ask.resource.is_empty();
    let parts: Vec<String> = [&ask.resource, &ask.name, &ask.subresource]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("{:?}", part.as_str()))
        .collect();
    let prefix = ask.path.split('/').nth(1).unwrap_or_default();
    Reply::Text(
        500,
        format!(
            "cluster path is empty in the request context - RequestInfo: &request.RequestInfo{{IsResourceRequest:\
             {is_resource}, Path:{:?}, Verb:{:?}, APIPrefix:{prefix:?}, APIGroup:{:?}, APIVersion:{:?}, Namespace:{:?}, \
             Resource:{:?}, Subresource:{:?}, Name:{:?}, Parts:[]string{{{}}}, FieldSelector:\"\", LabelSelector:\"\"}}\n",
            ask.path,
            ask.verb,
            ask.group,
            ask.version,
            ask.namespace,
            ask.resource,
            ask.subresource,
            ask.name,
            parts.join(", "),
        ),
    )
}

pub(super) fn unauthorized() -> Reply {
    refused(401, "Unauthorized", "Unauthorized")
}

/// The user may not do this.
pub(super) fn forbidden(ask: &Ask) -> Reply {
    let user = &ask.user;
    if ask.resource.is_empty() {
        let path = &ask.path;
        let message = format!("forbidden: User {:?} cannot {} path {:?}: access denied", &**user, ask.verb, &**path);
        return about(status(403, "Forbidden", message), ask);
    }
    let named = if ask.name.is_empty() { String::new() } else { format!(" {:?}", &*ask.name) };
    let part = if ask.subresource.is_empty() { String::new() } else { format!("/{}", ask.subresource) };
    let whence = match ask.namespace.is_empty() {
        true => "at the cluster scope".to_owned(),
        false => format!("in the namespace {:?}", &*ask.namespace),
    };
    let message = format!(
        "{}{named} is forbidden: User {:?} cannot {} resource \"{}{part}\" in API group {:?} {whence}: access denied",
        resource(ask),
        &**user,
        ask.verb,
        ask.resource,
        &*ask.group,
    );
    about(status(403, "Forbidden", message), ask)
}

pub(super) fn not_found(ask: &Ask, name: &str) -> Reply {
    let ask = Ask { name: name.into(), ..ask.clone() };
    about(status(404, "NotFound", format!("{} {name:?} not found", resource(&ask))), &ask)
}

pub(super) fn already_exists(ask: &Ask, name: &str) -> Reply {
    let ask = Ask { name: name.into(), ..ask.clone() };
    about(status(409, "AlreadyExists", format!("{} {name:?} already exists", resource(&ask))), &ask)
}

/// What is written is no longer what was read.
pub(super) fn stale(ask: &Ask) -> Reply {
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the \
         latest version and try again",
        resource(ask),
        &*ask.name
    );
    about(status(409, "Conflict", message), ask)
}

pub(super) fn not_allowed() -> Reply {
    refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
}

/// There is an object, but no such part of it.
pub(super) fn no_such_part() -> Reply {
    refused(404, "NotFound", "the server could not find the requested resource")
}

pub(super) fn unknown_media(accepted: &str) -> Reply {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    refused(415, "UnsupportedMediaType", message)
}

pub(super) fn too_large() -> Reply {
    refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
}

/// An option of the request that cannot be; `kind` is that of the options.
pub(super) fn invalid_option(kind: &str, field: &str, reason: &str, why: &str) -> Reply {
    let mut status = status(422, "Invalid", format!("{kind}.meta.k8s.io \"\" is invalid: {field}: {why}"));
    let cause = StatusCause { reason: Some(reason.into()), message: Some(why.into()), field: Some(field.into()) };
    status.details = Some(StatusDetails {
        group: Some("meta.k8s.io".into()),
        kind: Some(kind.into()),
        causes: Some(vec![cause]),
        ..StatusDetails::default()
    });
    Reply::Status(status)
}

pub(super) fn forbidden_option(field: &str, why: &str) -> Reply {
    invalid_option("ListOptions", field, "FieldValueForbidden", &format!("Forbidden: {why}"))
}

/// A version that is no number.
pub(super) fn no_version(text: &str) -> Reply {
    let message =
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
    refused(500, "", message)
}

/// A list as it was at a version of which nothing is known any more.
pub(super) fn list_expired() -> Reply {
    refused(410, "Expired", "The resourceVersion for the provided list is too old.")
}

/// A page of such a list, with the token by which the rest can be had as it is now.
pub(super) fn page_expired(token: String) -> Reply {
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                   list without the continue parameter, or use the continue token in this response to retrieve the \
                   remainder of the results. Continuing with the provided token results in an inconsistent list - \
                   objects that were created, modified, or deleted between the time the first chunk was returned and \
                   now may show up in the list.";
    let mut status = status(410, "Expired", message);
    status.metadata.continue_ = Some(token);
    Reply::Status(status)
}

/// A list of the future.
pub(super) fn too_new(version: u64, current: u64) -> Reply {
    let mut status = status(504, "Timeout", format!("Too large resource version: {version}, current: {current}"));
    let cause = StatusCause {
        reason: Some("ResourceVersionTooLarge".into()),
        message: Some("Too large resource version".into()),
        field: None,
    };
    status.details =
        Some(StatusDetails { causes: Some(vec![cause]), retry_after_seconds: Some(1), ..StatusDetails::default() });
    Reply::Status(status)
}
