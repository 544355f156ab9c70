//! A request that was read: what is to be done. Reading needs nobody's time but the reader's.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde_json::Value;

use super::ask::{Ask, Place, Stocked};
use super::lists::Page;
use super::query::Query;
use super::refusal;
use super::reply::Reply;
use super::selector::Selector;
use super::watch::Start;
use crate::api::{Kind, Text};
use crate::sim::Preconditions;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    Get,
    List(Page),
    Watch(Start),
    Create(Value),
    Update(Value),
    Merge(Value),
    JsonPatch(Value),
    Apply { body: Value, force: bool },
    Delete(Preconditions),
    DeleteAll(Selector),
}

/// What is to be done, and in whose name.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub doing: Doing,
    pub manager: Text,
    pub dry_run: bool,
}

impl Call {
    /// Reads a request for objects.
    pub fn read(ask: &Ask, headers: &HeaderMap, body: &Bytes) -> Result<Self, Reply> {
        let query = Query::of(&ask.query);
        let media = media(headers);
        let doing = match ask.verb {
            "get" => Doing::Get,
            "list" => Doing::List(Page::read(query)?),
            "watch" => Doing::Watch(Start::read(query)?),
            "create" if ask.name.is_empty() => Doing::Create(object(ask, media, body)?),
            "update" if !ask.name.is_empty() => Doing::Update(object(ask, media, body)?),
            "patch" if !ask.name.is_empty() => patch(ask, query, media, body)?,
            "delete" => Doing::Delete(preconditions(ask, media, body)?.0),
            "deletecollection" => {
                Doing::DeleteAll(Selector::read(&query.text("fieldSelector"), &query.text("labelSelector"))?)
            }
            _ => return Err(refusal::not_allowed()),
        };
        let mut dry_run = match query.find("dryRun").as_deref() {
            None | Some("") => false,
            Some("All") => true,
            Some(other) => {
                let why = format!("Unsupported value: {other:?}: supported values: \"All\"");
                return Err(refusal::invalid_option("PatchOptions", "dryRun", "FieldValueNotSupported", &why));
            }
        };
        if matches!(doing, Doing::Delete(_)) && !body.is_empty() {
            dry_run |= preconditions(ask, media, body)?.1;
        }
        let manager = query.find("fieldManager").map(Text::from).unwrap_or_else(|| match doing {
            // Who applies has to say its name.
            Doing::Apply { .. } => Text::default(),
            _ => program(headers),
        });
        Ok(Self { doing, manager, dry_run })
    }
}

/// What the body is, as far as the request says.
fn media(headers: &HeaderMap) -> &str {
    let media = headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim()
}

/// The program that asks, which manages what it writes if it says nothing else.
fn program(headers: &HeaderMap) -> Text {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.split('/').next().unwrap_or_default().chars().take(128).collect::<String>().into()
}

fn object(ask: &Ask, media: &str, body: &Bytes) -> Result<Value, Reply> {
    match media {
        JSON | "" => serde_json::from_slice(body).map_err(|error| unrecognized(ask, body, &error)),
        YAML => from_yaml(body).map_err(|why| refusal::bad_request(format!("error decoding YAML: {why}"))),
        _ => Err(refusal::unknown_media("application/json, application/yaml")),
    }
}

fn patch(ask: &Ask, query: Query, media: &str, body: &Bytes) -> Result<Doing, Reply> {
    let json = || {
        let json = serde_json::from_slice(body);
        json.map_err(|error| refusal::bad_request(format!("error decoding patch: {}", words(&error, body))))
    };
    match media {
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            // JSON is YAML, and quicker to read.
            let json = serde_json::from_slice(body).or_else(|_| from_yaml(body));
            let body = json.map_err(|why| refusal::bad_request(format!("error decoding YAML: {why}")))?;
            Ok(Doing::Apply { body, force: query.is("force") })
        }
        "application/merge-patch+json" => Ok(Doing::Merge(json()?)),
        "application/json-patch+json" => Ok(Doing::JsonPatch(json()?)),
        // The built-in kinds know how their lists merge. Nobody here needs that.
        "application/strategic-merge-patch+json" if ask.place != Place::Stock(Stocked::Leases) => {
            Err(unknown_patch(ask))
        }
        "application/strategic-merge-patch+json" => Ok(Doing::Merge(json()?)),
        _ => Err(unknown_patch(ask)),
    }
}

fn unknown_patch(ask: &Ask) -> Reply {
    let strategic = if ask.kind == Some(Kind::Crd) { ", application/strategic-merge-patch+json" } else { "" };
    refusal::unknown_media(&format!(
        "application/json-patch+json, application/merge-patch+json{strategic}, application/apply-patch+yaml, \
         application/apply-patch+yaml"
    ))
}

/// What has to be so that something is deleted; and whether it is a dry run.
fn preconditions(ask: &Ask, media: &str, body: &Bytes) -> Result<(Preconditions, bool), Reply> {
    if body.is_empty() {
        return Ok((Preconditions::default(), false));
    }
    let options = object(ask, media, body)?;
    let text = |pointer: &str| Text::from(options.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
    let preconditions =
        Preconditions { uid: text("/preconditions/uid"), resource_version: text("/preconditions/resourceVersion") };
    let dry_run = options.pointer("/dryRun/0").and_then(Value::as_str) == Some("All");
    Ok((preconditions, dry_run))
}

fn from_yaml(body: &Bytes) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let options = serde_saphyr::options! { with_snippet: false, emit_comments: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// A body that is no JSON, in the server's words.
fn unrecognized(ask: &Ask, body: &Bytes, error: &serde_json::Error) -> Reply {
    let kind = ask.kind.map_or("Lease", Kind::as_str);
    let words = words(error, body);
    let shown = shown(body);
    refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
         {words} ({shown})"
    ))
}

fn words(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let letter = line.get(error.column().saturating_sub(1)).copied().unwrap_or(b' ');
    format!("invalid character {:?} looking for beginning of value", char::from(letter))
}

/// The first hundred bytes of a body, as they are or as numbers.
fn shown(body: &[u8]) -> String {
    let (start, more) = match body.get(..100) {
        Some(start) => (start, " ..."),
        None => (body, ""),
    };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).chain([more.into()]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};
    use serde_json::json;

    use super::*;

    fn read(method: Method, path: &str, media: &'static str, body: &'static str) -> Result<Call, u16> {
        let ask = Ask::of(&method, &path.parse().unwrap());
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static(media)),
            (USER_AGENT, HeaderValue::from_static("kubectl/v1.32 (linux)")),
        ]);
        Call::read(&ask, &headers, &Bytes::from_static(body.as_bytes()))
            .map_err(|reply| reply.encode().status().as_u16())
    }

    const ONE: &str = "/clusters/a/apis/apis.kcp.io/v1alpha2/apibindings/geese";
    const ALL: &str = "/clusters/a/apis/apis.kcp.io/v1alpha2/apibindings";

    #[test]
    fn bodies_are_read_as_what_they_say_they_are() {
        let call = read(Method::PATCH, ONE, "application/apply-patch+yaml", "a: {b: y}\n").unwrap();
        assert!(matches!(&call.doing, Doing::Apply { body, force: false } if *body == json!({"a": {"b": true}})));
        assert!(call.manager.is_empty());
        let call = read(Method::PATCH, ONE, "application/merge-patch+json; charset=utf-8", "{}").unwrap();
        assert!(matches!(call.doing, Doing::Merge(_)));
        assert_eq!(call.manager, "kubectl");
        assert_eq!(read(Method::PATCH, ONE, "application/json", "{}").err(), Some(415));
        assert_eq!(read(Method::POST, ALL, "text/plain", "{}").err(), Some(415));
        assert_eq!(read(Method::POST, ALL, "", "[").err(), Some(400));
        assert_eq!(read(Method::PATCH, ONE, "application/apply-patch+yaml", "a: [").err(), Some(400));
    }

    #[test]
    fn methods_have_their_places() {
        assert_eq!(read(Method::POST, ONE, "", "{}").err(), Some(405));
        assert_eq!(read(Method::PUT, ALL, "", "{}").err(), Some(405));
        assert_eq!(read(Method::TRACE, ONE, "", "").err(), Some(405));
        assert_eq!(read(Method::PUT, &format!("{ONE}?dryRun=Some"), "", "{}").err(), Some(422));
    }

    #[test]
    fn bodies_that_explode_are_refused() {
        let laughs: String =
            (1..30).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}, *a{0}, *a{0}]\n", at - 1)).collect();
        let laughs = format!("a0: &a0 [x, x]\n{laughs}");
        let deep = 200_000;
        let bodies =
            ["[".repeat(deep), "{a: ".repeat(deep), "- ".repeat(deep), "? ".repeat(deep), laughs, "&a [*a]".into()];
        for body in bodies {
            let ask = Ask::of(&Method::PATCH, &ONE.parse().unwrap());
            for media in ["application/apply-patch+yaml", "application/merge-patch+json", JSON, YAML] {
                let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
                let read = Call::read(&ask, &headers, &Bytes::from(body.clone().into_bytes()));
                assert!(read.is_err(), "{media} {}", body.get(..20).unwrap_or_default());
            }
        }
    }

    #[test]
    fn deletions_have_options() {
        let body = r#"{"preconditions": {"uid": "u"}, "dryRun": ["All"]}"#;
        let call = read(Method::DELETE, ONE, JSON, body).unwrap();
        assert!(call.dry_run);
        assert!(matches!(call.doing, Doing::Delete(Preconditions { uid, .. }) if uid == "u"));
    }
}
