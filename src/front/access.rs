//! Who may come in, and what they may do: tokens, and rules as RBAC has them.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::Deserialize;

use super::ask::Ask;
use super::refusal;
use super::reply::Reply;
use super::settings::Settings;
use crate::api::Text;

/// Somebody who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// As refusals name it.
    pub name: String,
    /// The token by which it is known.
    pub token: String,
    /// What it may do. `None`: what [`Settings::allow`] says.
    pub allow: Option<Vec<Rule>>,
}

/// What somebody may do: a rule as it stands in a ClusterRole, and where it holds.
///
/// ```
/// use apibinding::front::Rule;
///
/// let rule: Rule = serde_json::from_str(r#"{
///     "apiGroups": ["apis.kcp.io"],
///     "resources": ["apibindings/status"],
///     "verbs": ["patch"]
/// }"#)?;
/// assert_eq!(rule.verbs, ["patch"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The groups; `*`: all.
    pub api_groups: Vec<String>,
    /// The resources, and `resource/status` for their parts; `*`: all.
    pub resources: Vec<String>,
    /// The objects; empty: all.
    pub resource_names: Vec<String>,
    /// What is done: `get`, `list`, `watch`, `create`, …; `*`: anything.
    pub verbs: Vec<String>,
    /// Paths that lead to no objects; one may end in `*`.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// The logical clusters, as they stand in paths, where the rule holds; empty: all of them, and all at once.
    pub clusters: Vec<String>,
}

/// All that decides who may do what.
#[derive(Clone, Debug)]
pub(super) struct Access {
    users: Option<Vec<User>>,
    allow: Option<Vec<Rule>>,
}

impl Access {
    pub fn new(settings: &Settings) -> Self {
        Self { users: settings.users.clone(), allow: settings.allow.clone() }
    }

    /// Finds who asks, and whether it may.
    pub fn admit(&self, ask: &mut Ask, headers: &HeaderMap) -> Result<(), Reply> {
        let rules = match &self.users {
            None => self.allow.as_deref(),
            Some(users) => match headers.get(AUTHORIZATION) {
                None => {
                    ask.user = "system:anonymous".into();
                    Some([].as_slice())
                }
                Some(sent) => {
                    let token = sent.to_str().ok().and_then(|sent| sent.strip_prefix("Bearer ")).map(str::trim);
                    let user = users.iter().find(|user| Some(user.token.as_str()) == token);
                    let user = user.ok_or_else(refusal::unauthorized)?;
                    ask.user = Text::from(&user.name);
                    user.allow.as_deref().or(self.allow.as_deref())
                }
            },
        };
        if ask.user.is_empty() {
            ask.user = "shard-admin".into();
        }
        // Whether a server is well may be asked by anybody.
        let is_health = ask.resource.is_empty() && ["/healthz", "/livez", "/readyz", "/version"].contains(&&*ask.path);
        match rules {
            Some(rules) if !is_health && !rules.iter().any(|rule| rule.allows(ask)) => Err(refusal::forbidden(ask)),
            _ => Ok(()),
        }
    }
}

impl Rule {
    /// True if it lets this be done.
    pub fn allows(&self, ask: &Ask) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|text| text == "*" || text == wanted);
        if !has(&self.verbs, ask.verb) {
            return false;
        }
        if ask.resource.is_empty() {
            return self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
                Some(start) => ask.path.starts_with(start),
                None => *ask.path == **url,
            });
        }
        let is_resource = |text: &String| match text.split_once('/') {
            _ if text == "*" => true,
            Some((resource, part)) => (resource == "*" || *resource == *ask.resource) && *part == *ask.subresource,
            None => ask.subresource.is_empty() && **text == *ask.resource,
        };
        has(&self.api_groups, &ask.group)
            && self.resources.iter().any(is_resource)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| **name == *ask.name))
            && (self.clusters.is_empty() || self.clusters.iter().any(|cluster| **cluster == *ask.cluster))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    const BINDINGS: &str = "/clusters/a/apis/apis.kcp.io/v1alpha2/apibindings";

    #[track_caller]
    fn check(rule: serde_json::Value, method: Method, path: &str, expect: bool) {
        let rule: Rule = serde_json::from_value(rule).unwrap();
        assert_eq!(rule.allows(&Ask::of(&method, &path.parse().unwrap())), expect);
    }

    #[test]
    fn rules_are_those_of_rbac() {
        let rule = json!({"apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["get", "patch"]});
        check(rule.clone(), Method::GET, &format!("{BINDINGS}/geese"), true);
        check(rule.clone(), Method::GET, BINDINGS, false);
        check(rule.clone(), Method::PATCH, &format!("{BINDINGS}/geese"), true);
        check(rule, Method::PATCH, &format!("{BINDINGS}/geese/status"), false);
        let rule = json!({"apiGroups": ["*"], "resources": ["*/status"], "verbs": ["*"], "clusters": ["a"]});
        check(rule.clone(), Method::PATCH, &format!("{BINDINGS}/geese/status"), true);
        check(rule.clone(), Method::PATCH, &format!("{BINDINGS}/geese"), false);
        check(rule, Method::PATCH, &BINDINGS.replace("/a/", "/b/"), false);
        let rule = json!({"nonResourceURLs": ["/clusters/a/api*"], "verbs": ["get"]});
        check(rule.clone(), Method::GET, "/clusters/a/apis", true);
        check(rule.clone(), Method::GET, BINDINGS, false);
        check(rule, Method::GET, "/clusters/b/apis", false);
    }
}
