//! What a request asks for, as far as its method and its path tell.

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use super::query::Query;
use crate::api::{Kind, Text};
use crate::snapshot::Origin;

/// What a request asks for, as far as its method and its path tell.
///
/// Whatever does not stand in them is empty: a request for `/version` has no resource, one for a list no name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// Which request it is, counted from 1.
    pub number: u64,
    /// Its method.
    pub method: Method,
    /// Its path, without the query.
    pub path: Text,
    /// Its query, as it was sent.
    pub query: Text,
    /// What it does, in the words of RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    pub verb: &'static str,
    /// The server itself, or its cache server.
    pub origin: Origin,
    /// The logical cluster, as it stands in the path: a name, a path, or `*`.
    pub cluster: Text,
    /// The API group.
    pub group: Text,
    /// The version of the API.
    pub version: Text,
    /// The resource, as paths name it.
    pub resource: Text,
    /// Its kind, if it is one of the six.
    pub kind: Option<Kind>,
    /// The namespace.
    pub namespace: Text,
    /// The object.
    pub name: Text,
    /// `status`, for instance.
    pub subresource: Text,
    /// Who asks; empty as long as nobody is asked for a token.
    pub user: Text,
    pub(super) place: Place,
}

/// What answers a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing.
    Nowhere,
    /// A path that needs a logical cluster in front.
    Homeless,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`.
    Api,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group,
    /// `/apis/GROUP/VERSION`, and `/api/v1`.
    Resources,
    /// The objects of the six kinds.
    Objects(Kind),
    /// Objects that the front keeps itself.
    Stock(Stocked),
}

/// Kinds that the front keeps itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stocked {
    Leases,
    Namespaces,
    /// Of which there are none, but kubectl asks for them.
    Events,
}

/// The kinds that the cache server has, or at least serves.
fn is_cached(kind: Kind) -> bool {
    kind != Kind::ApiBinding
}

impl Ask {
    /// Reads method and path. Nothing is too strange for that.
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let mut ask = Self {
            number: 0,
            method: method.clone(),
            path: uri.path().into(),
            query: uri.query().unwrap_or_default().into(),
            verb: "",
            origin: Origin::Local,
            cluster: Text::default(),
            group: Text::default(),
            version: Text::default(),
            resource: Text::default(),
            kind: None,
            namespace: Text::default(),
            name: Text::default(),
            subresource: Text::default(),
            user: Text::default(),
            place: Place::Nowhere,
        };
        let segments: Vec<Text> = uri.path().split('/').skip(1).map(decoded).collect();
        ask.place = ask.locate(&segments);
        ask.verb = ask.verb();
        ask
    }

    fn locate(&mut self, segments: &[Text]) -> Place {
        let path: Vec<&str> = segments.iter().map(Text::as_str).collect();
        // A path may end in a slash.
        let path = match path.split_last() {
            Some((&"", rest)) => rest,
            _ => &path,
        };
        match path {
            ["services", "cache", "shards", _, "clusters", cluster, rest @ ..] => {
                self.origin = Origin::Global;
                self.cluster = (*cluster).into();
                self.locate_in_cluster(rest)
            }
            ["clusters", cluster, rest @ ..] => {
                self.cluster = (*cluster).into();
                self.locate_in_cluster(rest)
            }
            ["apis", _, _, _, ..] | ["api", _, _, ..] => {
                self.locate_in_cluster(path);
                Place::Homeless
            }
            path => match self.locate_in_cluster(path) {
                place @ (Place::Version | Place::Health) => place,
                Place::Nowhere => Place::Nowhere,
                _ => Place::Homeless,
            },
        }
    }

    fn locate_in_cluster(&mut self, path: &[&str]) -> Place {
        match path {
            ["version"] => Place::Version,
            ["healthz" | "livez" | "readyz", ..] => Place::Health,
            ["api"] => Place::Api,
            ["apis"] => Place::Groups,
            ["apis", group] => {
                self.group = (*group).into();
                Place::Group
            }
            ["api", version] => {
                self.version = (*version).into();
                Place::Resources
            }
            ["apis", group, version] => {
                (self.group, self.version) = ((*group).into(), (*version).into());
                Place::Resources
            }
            ["api", version, rest @ ..] => self.locate_object("", version, rest),
            ["apis", group, version, rest @ ..] => self.locate_object(group, version, rest),
            _ => Place::Nowhere,
        }
    }

    fn locate_object(&mut self, group: &str, version: &str, path: &[&str]) -> Place {
        let (namespace, path) = match path {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            path => ("", path),
        };
        let (resource, name, subresource) = match path {
            [resource] => (*resource, "", ""),
            [resource, name] => (*resource, *name, ""),
            [resource, name, subresource] => (*resource, *name, *subresource),
            _ => return Place::Nowhere,
        };
        (self.group, self.version, self.namespace) = (group.into(), version.into(), namespace.into());
        (self.resource, self.name, self.subresource) = (resource.into(), name.into(), subresource.into());
        let kind = Kind::of_plural(resource)
            .filter(|kind| namespace.is_empty() && kind.api_version().split_once('/') == Some((group, version)));
        self.kind = kind.filter(|kind| self.origin == Origin::Local || is_cached(*kind));
        if let Some(kind) = self.kind {
            return Place::Objects(kind);
        }
        if self.origin == Origin::Global {
            return Place::Nowhere;
        }
        match (group, version, resource) {
            ("coordination.k8s.io", "v1", "leases") => Place::Stock(Stocked::Leases),
            ("", "v1", "namespaces") => Place::Stock(Stocked::Namespaces),
            ("", "v1", "events") => Place::Stock(Stocked::Events),
            _ => Place::Nowhere,
        }
    }

    fn verb(&self) -> &'static str {
        let (one, many) = match self.method.as_str() {
            "GET" | "HEAD" if self.resource.is_empty() => return "get",
            "GET" | "HEAD" => ("get", if Query::of(&self.query).is("watch") { "watch" } else { "list" }),
            "POST" => ("create", "create"),
            "PUT" => ("update", "update"),
            "PATCH" => ("patch", "patch"),
            "DELETE" => ("delete", "deletecollection"),
            _ => ("", ""),
        };
        if self.name.is_empty() { many } else { one }
    }
}

/// What a part of a path means.
fn decoded(text: &str) -> Text {
    if text.contains('%') { percent_decode_str(text).decode_utf8_lossy().as_ref().into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, path: &str) -> Ask {
        Ask::of(&method.parse().unwrap(), &path.parse().unwrap())
    }

    #[test]
    fn paths_lead_to_objects() {
        let asked = ask("PATCH", "/clusters/system:shard/apis/apis.kcp.io/v1alpha2/apibindings/a.b/status?force=true");
        assert_eq!(asked.place, Place::Objects(Kind::ApiBinding));
        assert_eq!(
            (&*asked.cluster, &*asked.name, &*asked.subresource, asked.verb),
            ("system:shard", "a.b", "status", "patch")
        );
        let asked = ask("GET", "/services/cache/shards/*/clusters/%2A/apis/apis.kcp.io/v1alpha2/apiexports?watch=1");
        assert_eq!((asked.origin, &*asked.cluster, asked.verb), (Origin::Global, "*", "watch"));
        let asked = ask("PUT", "/clusters/root/apis/coordination.k8s.io/v1/namespaces/default/leases/a");
        assert_eq!((asked.place, &*asked.namespace), (Place::Stock(Stocked::Leases), "default"));
        assert_eq!(ask("GET", "/clusters/root/api/v1/namespaces/default").place, Place::Stock(Stocked::Namespaces));
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in [
            "/",
            "//",
            "/clusters",
            "/clusters/a",
            "/clusters/*/apis/apis.kcp.io/v9/apibindings",
            "/clusters/*/apis/apis.kcp.io/v1alpha2/namespaces/default/apibindings",
            "/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apibindings",
            "/clusters/*/apis/apis.kcp.io/v1alpha2/apibindings/a/b/c/d",
            "/clusters/a/openapi/v3",
        ] {
            assert_eq!(ask("GET", path).place, Place::Nowhere, "{path}");
        }
        assert_eq!(ask("GET", "/apis/apis.kcp.io/v1alpha2/apibindings").place, Place::Homeless);
        assert_eq!(ask("GET", "/readyz").place, Place::Health);
    }
}
