//! Lists: which version they show, and in which pages.

use std::sync::Arc;

use serde_json::{Value, json};

use super::house::House;
use super::query::Query;
use super::refusal;
use super::reply::{Body, List, Reply};
use super::selector::Selector;
use crate::api::{CLUSTER_ANNOTATION, ClusterName, Kind};
use crate::sim::Owners;
use crate::snapshot::Origin;

/// What of a list is wanted.
#[derive(Clone, Debug)]
pub(super) struct Page {
    limit: usize,
    from: Option<Token>,
    version: Version,
    selector: Selector,
}

/// As of when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Now,
    NotBefore(u64),
    Exactly(u64),
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    /// As of when; `None`: now.
    version: Option<u64>,
    /// The first object that may be on the page.
    start: String,
}

impl Page {
    pub fn read(query: Query) -> Result<Self, Reply> {
        let text = |name: &str| query.text(name);
        let selector = Selector::read(&text("fieldSelector"), &text("labelSelector"))?;
        let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
        let (version, matching, token) = (text("resourceVersion"), text("resourceVersionMatch"), text("continue"));
        if query.find("sendInitialEvents").is_some() {
            let why = "sendInitialEvents is forbidden for list";
            return Err(refusal::forbidden_option("sendInitialEvents", why));
        }
        let number = match version.as_str() {
            "" => 0,
            version => version.parse().map_err(|_| refusal::no_version(version))?,
        };
        if !matching.is_empty() && (version.is_empty() || !token.is_empty()) {
            let why = match token.is_empty() {
                true => "resourceVersionMatch is forbidden unless resourceVersion is provided",
                false => "resourceVersionMatch is forbidden when continue is provided",
            };
            return Err(refusal::forbidden_option("resourceVersionMatch", why));
        }
        if !token.is_empty() {
            if number > 0 {
                let why = "specifying resource version is not allowed when using continue";
                return Err(refusal::bad_request(why));
            }
            let from = Some(Token::read(&token).map_err(|why| {
                refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
            })?);
            return Ok(Self { limit, from, version: Version::Now, selector });
        }
        let version_wanted = match (matching.as_str(), number) {
            ("Exact", 0) => {
                let why = "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"";
                return Err(refusal::forbidden_option("resourceVersionMatch", why));
            }
            ("Exact", number) => Version::Exactly(number),
            (_, 0) => Version::Now,
            // Pages of a version that somebody has seen: that one, and no later one.
            ("", number) if limit > 0 => Version::Exactly(number),
            ("" | "NotOlderThan", number) => Version::NotBefore(number),
            (other, _) => {
                let why = format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\"");
                let field = "resourceVersionMatch";
                return Err(refusal::invalid_option("ListOptions", field, "FieldValueNotSupported", &why));
            }
        };
        // From the watch cache, as it was meant to be: all at once.
        let limit = if version == "0" { 0 } else { limit };
        Ok(Self { limit, from: None, version: version_wanted, selector })
    }

    /// Finds what is wanted.
    pub fn find(&self, house: &House, origin: Origin, kind: Kind, cluster: Option<&ClusterName>) -> Reply {
        let current = house.kcp().version();
        let asked = match (&self.from, self.version) {
            (Some(Token { version: Some(version), .. }), _) => *version,
            (None, Version::Exactly(version)) => version,
            (None, Version::NotBefore(version)) if version > current => return refusal::too_new(version, current),
            _ => current,
        };
        if asked > current {
            return refusal::too_new(asked, current);
        }
        let Ok(all) = house.kcp().list_at(origin, kind, cluster, asked) else {
            return match &self.from {
                Some(token) => refusal::page_expired(Token { version: None, ..token.clone() }.to_string()),
                None => refusal::list_expired(),
            };
        };
        let mut items = all;
        if let Some(token) = &self.from {
            let (start_cluster, start) = token.place(origin, cluster.is_some());
            items.retain(|(object, _)| {
                let (cluster, name) = place(object);
                (if start_cluster.is_empty() { "" } else { cluster }, name) >= (start_cluster, start)
            });
        }
        if !self.selector.is_empty() {
            items.retain(|(object, _)| self.selector.takes(object));
        }
        let mut list = List {
            api_version: kind.api_version(),
            kind: format!("{}List", kind.as_str()),
            is_bare: kind == Kind::Crd,
            items: Vec::new(),
            version: asked,
            next: String::new(),
            remaining: None,
        };
        if self.limit > 0 && items.len() > self.limit {
            let remaining = items.len() - self.limit;
            items.truncate(self.limit);
            if let Some((last, _)) = items.last() {
                list.next = Token::after(last, asked, origin, cluster.is_some()).to_string();
            }
            list.remaining = self.selector.is_empty().then_some(remaining);
        }
        list.items = items.into_iter().map(|(object, owners)| house.body(object, owners)).collect();
        Reply::List(Box::new(list))
    }
}

/// Where an object stands in a list of all.
fn place(object: &Value) -> (&str, &str) {
    let metadata = object.get("metadata");
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    let cluster = annotations.and_then(|annotations| annotations.get(CLUSTER_ANNOTATION)).and_then(Value::as_str);
    let name = metadata.and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    (cluster.unwrap_or_default(), name.unwrap_or_default())
}

impl Token {
    /// The page after an object.
    fn after(object: &Value, version: u64, origin: Origin, in_one_cluster: bool) -> Self {
        let (cluster, name) = place(object);
        let start = match (in_one_cluster, origin) {
            (true, _) => format!("{name}\0"),
            (false, Origin::Local) => format!("/{cluster}/{name}\0"),
            (false, Origin::Global) => format!("root/{cluster}/{name}\0"),
        };
        Self { version: Some(version), start }
    }

    /// The cluster (empty: whichever) and the name with which the page begins.
    fn place(&self, origin: Origin, in_one_cluster: bool) -> (&str, &str) {
        let start = self.start.trim_start_matches('/');
        if in_one_cluster {
            return ("", start);
        }
        let start = match origin {
            Origin::Local => start,
            Origin::Global => start.split_once('/').map_or("", |(_, start)| start),
        };
        start.split_once('/').unwrap_or((start, ""))
    }

    fn read(text: &str) -> Result<Self, String> {
        let bytes = base64::decode(text).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|_| {
            let first = bytes.first().map_or('\0', |byte| char::from(*byte));
            format!("invalid character '{first}' looking for beginning of value")
        })?;
        if json.get("v").and_then(Value::as_str) != Some("meta.k8s.io/v1") {
            return Err("server does not recognize this encoded version".into());
        }
        let version = match json.get("rv").and_then(Value::as_i64) {
            Some(version) if version < 0 => None,
            Some(version) if version > 0 => u64::try_from(version).ok(),
            _ => return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()),
        };
        match json.get("start").and_then(Value::as_str) {
            Some(start) if !start.is_empty() => Ok(Self { version, start: start.into() }),
            _ => Err("encoded start key empty (version meta.k8s.io/v1)".into()),
        }
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version.map_or(json!(-1), |version| json!(version));
        let start = json!(self.start);
        f.write_str(&base64::encode(
            format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{version},\"start\":{start}}}").as_bytes(),
        ))
    }
}

impl House {
    /// An object as it is answered.
    pub(super) fn body(&self, object: Arc<Value>, owners: Owners) -> Body {
        Body { object, owners: self.tells_owners().then_some(owners) }
    }
}

/// Base64 as URLs have it, without padding.
mod base64 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    pub fn encode(bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for chunk in bytes.chunks(3) {
            let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
            let group = group << (8 * (3 - chunk.len()));
            for at in 0..=chunk.len() {
                let index = (group >> (18 - 6 * at)) & 63;
                text.push(LETTERS.get(index as usize).map_or('A', |letter| char::from(*letter)));
            }
        }
        text
    }

    /// Gives where the text is none.
    pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
        let text = text.trim_end_matches('=');
        let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
        let (mut group, mut bits) = (0_u32, 0);
        for (at, letter) in text.bytes().enumerate() {
            let value = LETTERS.iter().position(|known| *known == letter).ok_or(at)?;
            group = group << 6 | u32::try_from(value).map_err(|_| at)?;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((group >> bits & 0xff) as u8);
            }
        }
        if text.len() % 4 == 1 { Err(text.len()) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_a_real_server() {
        let recorded =
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTYxNiwic3RhcnQiOiJyb290LzEyaGZzdWJsOTBxNTRlNzQvYmFkaG9va1x1MDAwMCJ9";
        let token = Token::read(recorded).unwrap();
        assert_eq!((token.version, token.start.as_str()), (Some(1616), "root/12hfsubl90q54e74/badhook\0"));
        assert_eq!(token.place(Origin::Global, false), ("12hfsubl90q54e74", "badhook\0"));
        assert_eq!(token.to_string(), recorded);
        assert_eq!(Token::read("abc"), Err("invalid character 'i' looking for beginning of value".into()));
        for garbage in ["a", "%", "e30", "bnVsbA", "äöü"] {
            assert!(Token::read(garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn base64_goes_there_and_back() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(97)).collect();
            assert_eq!(base64::decode(&base64::encode(&bytes)), Ok(bytes));
        }
    }
}
