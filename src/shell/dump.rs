//! Everything that the controller reads, as it is at one moment.

use std::time::Duration;

use serde_json::{Value, json};

use super::failure::Failure;
use super::pages;
use super::server::{Refusal, Server};
use crate::api::Kind;
use crate::snapshot::{Origin, STREAMS};

/// How often a list is begun anew that the server could not finish, since it had forgotten its beginning.
const TRIES: usize = 3;

/// What a kcp has of what the controller reads, each kind as a list.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Dump {
    /// The six kinds.
    pub local: Vec<Value>,
    /// The cache server's copies.
    pub global: Vec<Value>,
}

/// Lists all that the controller reads, of all logical clusters, without managed fields. `cache`: where the
/// global copies are, if anywhere.
///
/// The lists are not of one moment, but each is.
///
/// # Errors
/// A server refuses, or does not answer within `limit`.
pub async fn dump(server: &Server, cache: Option<&Server>, limit: Duration) -> Result<Dump, Failure> {
    let mut dump = Dump::default();
    for (origin, kind) in STREAMS {
        match (origin, cache) {
            (Origin::Local, _) => dump.local.push(list(server, origin, kind, limit).await?),
            (Origin::Global, Some(cache)) => dump.global.push(list(cache, origin, kind, limit).await?),
            (Origin::Global, None) => {}
        }
    }
    Ok(dump)
}

async fn list(server: &Server, origin: Origin, kind: Kind, limit: Duration) -> Result<Value, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut items = Vec::new();
        let listed = pages::list(server, origin, kind, limit, |item| {
            // What is text of JSON is JSON.
            let mut item: Value = serde_json::from_str(item.get()).unwrap_or_default();
            if let Some(metadata) = item.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            items.push(item);
        });
        match listed.await {
            Ok(version) => {
                return Ok(json!({
                    "apiVersion": kind.api_version(),
                    "kind": format!("{kind}List"),
                    "metadata": {"resourceVersion": version},
                    "items": items,
                }));
            }
            Err(expired) if expired.code() == 410 && tries < TRIES => {}
            Err(refusal) => return Err(failure(origin, kind, &refusal)),
        }
    }
}

fn failure(origin: Origin, kind: Kind, refusal: &Refusal) -> Failure {
    let (what, message) = (format!("GET {}", pages::path(origin, kind)), refusal.to_string());
    match (refusal.code(), refusal) {
        (401, _) => Failure::Unauthorized { what, message },
        (403, _) => Failure::Forbidden { what, message },
        (404, Refusal::Status(_)) => Failure::NotServed { kind, what, message },
        _ => Failure::NoAnswer { what, message },
    }
}
