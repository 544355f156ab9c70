//! Playing an exchange again, on a server that is as the recorded one was.

use std::collections::BTreeMap;

use apibinding::api::{BindingKey, Kind};
use apibinding::front::{Content, House, Rule, Settings, User};
use apibinding::sim::Kcp;
use apibinding::snapshot::Origin;
use serde_json::{Value, json};

use super::compare::{bare, bare_owners, same, verdict};
use super::exchange::{Exchange, Target};
use super::known::{Known, cluster_of, place, text, version};

/// Kept exchanges before which another one changed the object that was not recorded.
const AFTER_GAPS: &[&str] = &["ssa-lc-19-creation-timestamp-null"];

/// What a server answered.
pub struct Answered {
    pub code: u64,
    pub media: String,
    pub retry_after: Option<String>,
    pub body: Value,
}

/// A house that those may enter who could when it was recorded.
pub fn house(exchange: &Exchange, kcp: Kcp) -> House {
    let users = exchange.request()["headers"]["authorization"].is_string().then(|| {
        let user = |name: &str, allow: Option<Vec<Rule>>| User {
            name: name.to_owned(),
            token: format!("<token of {name}>"),
            allow,
        };
        let all = |clusters: &[&str]| Rule {
            api_groups: vec!["*".into()],
            resources: vec!["*".into()],
            verbs: vec!["*".into()],
            clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
            ..Rule::default()
        };
        let of_workspaces = vec![all(&["root:cons", "root:mix", "root:prov"])];
        vec![user("shard-admin", None), user("kcp-admin", Some(of_workspaces)), user("user", Some(Vec::new()))]
    });
    House::new(kcp, &Settings { users, ..Settings::default() })
}

/// Asks.
pub fn ask(house: &mut House, exchange: &Exchange) -> Answered {
    let response = house.answer(&exchange.to_http());
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (code, media, retry_after) =
        (u64::from(response.status().as_u16()), header("content-type").unwrap_or_default(), header("retry-after"));
    let body = match response.into_body() {
        Content::Whole(body) => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        other => panic!("{other:?}"),
    };
    Answered { code, media, retry_after, body }
}

impl Exchange {
    /// True if what was asked is answered the same.
    pub fn same_answer(&self, answered: &Answered) -> Result<(), String> {
        let Answered { code, media, retry_after, body } = answered;
        if *code != self.code() {
            return Err(format!("{code} instead of {}: {body}", self.code()));
        }
        let headers = &self.json["response"]["headers"];
        if headers.is_object() {
            same("the content type", &headers["content-type"], &json!(media))?;
            same("when to come again", &headers["retry-after"], &json!(retry_after))?;
        }
        let recorded = self.response();
        // A refused watch has one line.
        let refused = self.lines().filter(|lines| lines.len() == 1).map(|mut lines| lines.remove(0));
        let recorded = refused.as_ref().unwrap_or(recorded);
        if text(recorded, "/kind") == "Status" {
            return same("the status", &verdict(recorded), &verdict(body));
        }
        same("the object", &bare(recorded), &bare(body))
    }

    /// Replays it from every state that the object may have been in, the likeliest first. Tells from
    /// where it went well.
    pub fn replay(&self, known: &[Known]) -> Result<String, String> {
        let Some(target) = Target::of(text(self.request(), "/path")) else {
            return self.same_answer(&ask(&mut house(self, Kcp::new(1)), self)).map(|()| "nothing".into());
        };
        if target.query.contains_key("watch") {
            return self.replay_watch(&target).map(|()| "its own lines".into());
        }
        if target.name.is_empty() && self.method() == "GET" {
            return self.replay_list(&target).map(|()| "its own items".into());
        }
        let mut problems = Vec::new();
        for start in self.starts(&target, known) {
            let from = start.map_or("nothing", |start| start.file);
            match self.replay_from(&target, start, known) {
                Ok(()) => return Ok(from.to_owned()),
                Err(problem) => problems.push(format!("    from {from}: {problem}")),
            }
        }
        // The likeliest start says most.
        Err(problems.into_iter().next().unwrap_or_else(|| "    no state of the object is known".into()))
    }

    fn starts<'a>(&self, target: &Target, known: &'a [Known<'a>]) -> Vec<Option<&'a Known<'a>>> {
        let body = self.response();
        let name = if target.name.is_empty() { text(&self.request()["body"], "/metadata/name") } else { &target.name };
        let uid = text(body, "/metadata/uid");
        let cluster = cluster_of(&target.cluster, known);
        let same = |other: &&Known| {
            (other.kind, &*other.key.name, other.key.cluster.as_str()) == (target.kind, name, cluster.as_str())
                && (uid.is_empty() || text(other.object, "/metadata/uid") == uid)
        };
        let series = place(&self.file);
        let precedes = |other: &&Known| match (series, place(other.file)) {
            (Some((series, number)), Some((other, other_number))) => series == other && other_number < number,
            _ => false,
        };
        let has_gap = !self.is_of_series() || AFTER_GAPS.contains(&self.file.as_str());
        let may_be_own = has_gap || self.method() == "GET";
        // Those that precede it in its series come first, the latest before the others.
        let mut same: Vec<&Known> = known.iter().filter(same).collect();
        same.sort_by_key(|other| (!precedes(other), std::cmp::Reverse((place(other.file), other.version))));
        match self.code() {
            201 | 404 => vec![None],
            200 if text(body, "/kind") != "Status" => {
                // A state before, and where an exchange in between is not known, the one after: to ask
                // for it again changes nothing.
                let (own, others): (Vec<_>, Vec<_>) = same.into_iter().partition(|other| other.file == self.file);
                let before = others.into_iter().filter(|other| other.version <= version(body));
                let own = own.into_iter().filter(|_| may_be_own);
                before.chain(own).map(Some).collect()
            }
            _ => same.into_iter().map(Some).chain([None]).collect(),
        }
    }

    fn replay_from(&self, target: &Target, start: Option<&Known>, known: &[Known]) -> Result<(), String> {
        let body = self.response();
        let mut kcp = Kcp::new(1);
        let now = ["/metadata/deletionTimestamp", "/metadata/creationTimestamp"].map(|field| text(body, field));
        if let Some(now) = now.iter().find_map(|now| now.parse().ok()) {
            kcp.set_now(now);
        }
        // Where paths lead.
        let homes = known.iter().filter(|known| known.kind == Kind::LogicalCluster);
        let start_key = start.map(|start| (start.kind, &start.key));
        let homes: BTreeMap<_, _> = homes
            .filter(|home| {
                start_key != Some((home.kind, &home.key)) && (self.code() != 201 || target.kind != Kind::LogicalCluster)
            })
            .map(|home| (&home.key, home.object))
            .collect();
        let homes = homes.into_values().map(|home| {
            let mut home = home.clone();
            home["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            home
        });
        kcp.load(Origin::Local, homes);
        kcp.load(target.origin, start.map(|start| start.object.clone()));
        let key = kcp.resolve(&target.cluster).ok().map(|cluster| BindingKey::new(cluster, &*target.name));
        let is_dry = target.query.contains_key("dryRun");

        let mut house = house(self, kcp);
        let live = |house: &House| house.kcp().get(target.origin, target.kind, key.as_ref()?).cloned();
        let before = live(&house);
        let answered = ask(&mut house, self);
        if answered.code >= 400 || is_dry {
            assert_eq!(before, live(&house), "nothing may have changed");
        }
        self.same_answer(&answered)?;
        if text(body, "/kind") == "Status" {
            return Ok(());
        }
        if !is_dry {
            let owners = [body, &answered.body].map(|body| bare_owners(&body["metadata"]["managedFields"]));
            same("managedFields", &owners[0], &owners[1])?;
        }
        let Some(start) = start else { return Ok(()) };
        let (recorded, replayed) = (version(body) > start.version, version(&answered.body) > start.version);
        same("a new resourceVersion", &json!(recorded), &json!(replayed))
    }

    /// A list of what it shows, of as many objects after that as it tells of, and of what came later.
    fn replay_list(&self, target: &Target) -> Result<(), String> {
        let body = self.response();
        let wanted = ["/metadata/resourceVersion", "/metadata/continue"].map(|field| text(body, field));
        let asked: u64 = wanted[0].parse().unwrap_or(1_000);
        let mut kcp = Kcp::new(1);
        let object = |kind: Kind, cluster: String, name: &str, version: u64| {
            json!({
                "apiVersion": kind.api_version(),
                "kind": kind.as_str(),
                "metadata": {
                    "name": name,
                    "resourceVersion": version.to_string(),
                    "annotations": {"kcp.io/cluster": cluster},
                },
            })
        };
        let rest = body["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        kcp.load(target.origin, (0..rest).map(|at| object(target.kind, format!("zz-{at:03}"), "cluster", 0)));
        if target.query.contains_key("continue") {
            kcp.load(target.origin, [object(target.kind, "0".into(), "cluster", 0)]);
        }
        let items = body["items"].as_array().into_iter().flatten().cloned().map(|mut item| {
            item["apiVersion"] = json!(target.kind.api_version());
            item["kind"] = json!(target.kind.as_str());
            item
        });
        kcp.load(target.origin, items);
        // The last thing that happened before.
        let other = if target.kind == Kind::ApiExport { Kind::ApiConversion } else { Kind::ApiExport };
        kcp.load(target.origin, [object(other, "a".into(), "a", asked)]);
        if self.code() == 410 {
            kcp.compact(asked);
        }
        if target.query.contains_key("continue") {
            kcp.load(target.origin, [object(target.kind, "zz".into(), "cluster", asked + 5)]);
        }
        let answered = ask(&mut house(self, kcp), self);
        self.same_answer(&answered)?;
        for (recorded, replayed) in
            body["items"].as_array().into_iter().flatten().zip(answered.body["items"].as_array().into_iter().flatten())
        {
            let owners = [recorded, replayed].map(|item| bare_owners(&item["metadata"]["managedFields"]));
            same("managedFields", &owners[0], &owners[1])?;
        }
        Ok(())
    }
}
