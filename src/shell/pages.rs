//! Lists, page by page.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::executor::{encoded, kind_path};
use super::server::{Call, Refusal, Server};
use crate::api::{Kind, Text};
use crate::snapshot::Origin;

/// How many objects a page of a list has.
const PAGE: usize = 500;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

impl<'a> Page<'a> {
    /// Reads a page. What is not in a list is gone, so nothing else may pass for one: what stands between us and the
    /// server may answer as well.
    fn read(kind: Kind, body: &'a [u8]) -> Result<Self, String> {
        let page: Self = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        if page.kind.strip_suffix("List") != Some(kind.as_str()) {
            return Err(format!("its kind is `{}`, not `{kind}List`", page.kind));
        }
        if page.metadata.resource_version.is_empty() {
            return Err("it has no resourceVersion".into());
        }
        Ok(page)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: Text,
    #[serde(rename = "continue")]
    go_on: Option<String>,
}

/// Where all objects of a kind are.
pub(super) fn path(origin: Origin, kind: Kind) -> String {
    let before = match origin {
        Origin::Local => "/clusters/*",
        Origin::Global => "/services/cache/shards/*/clusters/*",
    };
    format!("{before}{}", kind_path(kind))
}

/// At which version a kind is now: that of a list which is not read to its end.
pub(super) async fn version(server: &Server, origin: Origin, kind: Kind, limit: Duration) -> Result<Text, Refusal> {
    let body = server.ask(Call::get(&format!("{}?limit=1", path(origin, kind))), limit).await?;
    Ok(Page::read(kind, &body).map_err(unreadable)?.metadata.resource_version)
}

/// Goes through all objects of a kind; gives the version at which they were so.
pub(super) async fn list(
    server: &Server,
    origin: Origin,
    kind: Kind,
    limit: Duration,
    mut each: impl FnMut(&RawValue),
) -> Result<Text, Refusal> {
    let all = format!("{}?limit={PAGE}", path(origin, kind));
    let mut path = all.clone();
    loop {
        let body = server.ask(Call::get(&path), limit).await?;
        let page = Page::read(kind, &body).map_err(unreadable)?;
        page.items.into_iter().flatten().for_each(&mut each);
        let Some(token) = page.metadata.go_on.filter(|token| !token.is_empty()) else {
            return Ok(page.metadata.resource_version);
        };
        let next = format!("{all}&continue={}", encoded(&token));
        if next == path {
            return Err(Refusal::no_answer("a list in which one page leads to itself"));
        }
        path = next;
    }
}

fn unreadable(why: String) -> Refusal {
    Refusal::no_answer(format!("a list that cannot be read: {why}"))
}
