//! A real HTTP server on 127.0.0.1 in front of the simulated kcp: what a client sees of a kcp, without a kcp.
//!
//! ```
//! use apibinding::api::Kind;
//! use apibinding::front::{Front, Settings};
//! use apibinding::sim::{Kcp, Request};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let front = Front::serve(Kcp::new(7), Settings::default())?;
//! let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "geese"}});
//! let created = front.with(|kcp| kcp.handle(Request::create(Kind::ApiExport, "root", export)));
//! assert!(created.is_ok());
//! // Whoever has an HTTP client finds it there.
//! println!("curl {}/clusters/root/apis/apis.kcp.io/v1alpha2/apiexports/geese", front.url());
//! // It gets its identity, and is copied to the cache server, as time goes by.
//! front.rest().await;
//! # front.stop().await;
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! * All paths have `/clusters/NAME`, `/clusters/PATH` or `/clusters/*` in front, and
//!   `/services/cache/shards/*` before that for the cache server. The six kinds, Leases, namespaces and
//!   discovery are served; `kubectl get`, `describe`, `delete`, `edit`, `patch` and `apply --server-side
//!   --validate=false` work.
//! * Lists, pages, watches, bookmarks, refusals and what is strange about them are those of a real server, whose
//!   recorded exchanges are replayed in `tests/wire.rs`.
//! * The others who live in a kcp do their part in real time: CRDs are established, exports get identities and
//!   copies, locks are cleaned up. [`Front::rest`] waits until they are done.
//! * Tests put [faults](Fault) between a client and the server ([`Front::intercept`]), let it forget its history, stop
//!   it and start it again, and read in the [log](Front::log) what was asked.
//! * [Rules](Rule) as RBAC has them show what a client can do without.
//!
//! It speaks HTTP without TLS, to this machine only.

mod access;
mod ask;
mod call;
mod discovery;
mod fault;
mod house;
mod json_patch;
mod lines;
mod lists;
mod objects;
mod outgoing;
mod query;
mod record;
mod refusal;
mod reply;
mod selector;
mod server;
mod settings;
mod shared;
mod stock;
mod telling;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::sleep;

pub use access::{Rule, User};
pub use ask::Ask;
pub use fault::Fault;
pub use house::House;
pub use record::Entry;
pub use reply::Content;
pub use settings::Settings;
pub use watch::Watch;

use crate::sim::Kcp;
use server::Running;
use shared::Shared;

/// A server in front of a simulated kcp. It ends when this is dropped.
#[derive(Debug)]
pub struct Front {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Mutex<Option<Running>>,
}

impl Front {
    /// Serves a simulated kcp, from now on in real time.
    ///
    /// # Errors
    /// The port is taken, or there is no tokio runtime to run in.
    pub fn serve(kcp: Kcp, settings: Settings) -> io::Result<Self> {
        let port = settings.port;
        let shared = Arc::new(Shared::new(kcp, settings));
        let running = Running::start(&shared, port)?;
        Ok(Self { address: running.address(), running: Mutex::new(Some(running)), shared })
    }

    /// Where it is: `http://127.0.0.1:PORT`. Paths begin with `/clusters/`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig that leads there. Its context is `shard-base`, as in that of a kcp's administrator, for programs
    /// that put `/clusters/…` in front of their paths; the context `root` is for kubectl, in the cluster `root`.
    pub fn kubeconfig(&self) -> String {
        let token = self.shared.settings.users.as_ref().and_then(|users| users.first()).map(|user| &user.token);
        let user = token.map_or_else(|| json!({}), |token| json!({"token": token}));
        let cluster = |name: &str, server: String| json!({"name": name, "cluster": {"server": server}});
        let context = |name: &str| json!({"name": name, "context": {"cluster": name, "user": "shard-admin"}});
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster("shard-base", self.url()), cluster("root", format!("{}/clusters/root", self.url()))],
            "users": [{"name": "shard-admin", "user": user}],
            "contexts": [context("shard-base"), context("root")],
            "current-context": "shard-base",
        });
        format!("{config:#}\n")
    }

    /// Looks at the kcp, or changes it; whoever watches hears of it.
    pub fn with<T>(&self, act: impl FnOnce(&mut Kcp) -> T) -> T {
        self.shared.change(|house| act(house.kcp_mut()))
    }

    /// True if none of the others is about to do anything, but for what is minutes away, such as a look for CRDs
    /// that nobody uses any more.
    pub fn is_at_rest(&self) -> bool {
        self.shared.change(|house| house.is_at_rest())
    }

    /// Waits until it [is at rest](Self::is_at_rest).
    pub async fn rest(&self) {
        while !self.is_at_rest() {
            let next = self.shared.change(|house| house.next_chore()).unwrap_or_default();
            sleep(next.clamp(Duration::from_millis(1), Duration::from_millis(50))).await;
        }
    }

    /// The last requests, oldest first.
    pub fn log(&self) -> Vec<Entry> {
        self.shared.record().entries().cloned().collect()
    }

    /// How many of the last requests are like that.
    pub fn count(&self, is_meant: impl Fn(&Entry) -> bool) -> usize {
        self.shared.record().entries().filter(|entry| is_meant(entry)).count()
    }

    /// How many requests there were in all.
    pub fn requests(&self) -> u64 {
        self.shared.record().count()
    }

    /// Forgets what was asked so far.
    pub fn clear_log(&self) {
        self.shared.record().clear();
    }

    /// From now on this decides of each request what goes wrong with it; the one before does no longer.
    ///
    /// ```no_run
    /// # use apibinding::front::{Fault, Front};
    /// # fn with(front: &Front) {
    /// let mut answers_to_lose = 3;
    /// front.intercept(move |ask| {
    ///     let strikes = ask.verb == "patch" && answers_to_lose > 0;
    ///     answers_to_lose -= u32::from(strikes);
    ///     strikes.then_some(Fault::Lose)
    /// });
    /// # }
    /// ```
    pub fn intercept(&self, decide: impl FnMut(&Ask) -> Option<Fault> + Send + 'static) {
        self.shared.set_hook(Some(fault::Hook::new(decide)));
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.shared.set_hook(None);
    }

    /// Forgets what happened so far, and ends all watches: who goes on from there is told that it is too late
    /// (410).
    pub fn forget_history(&self) {
        self.shared.change(House::forget_history);
        self.end_watches();
    }

    /// Ends all watches, as a server does every now and then.
    pub fn end_watches(&self) {
        self.shared.end_watches();
    }

    /// Stops: all connections are cut, none is accepted, and the others rest as well. The kcp stays as it is.
    pub async fn stop(&self) {
        if let Some(running) = self.running.lock().await.take() {
            running.stop().await;
        }
    }

    /// Starts again, where it was.
    ///
    /// # Errors
    /// The port was taken meanwhile.
    pub async fn restart(&self) -> io::Result<()> {
        self.stop().await;
        *self.running.lock().await = Some(Running::start(&self.shared, self.address.port())?);
        Ok(())
    }
}
