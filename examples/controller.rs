//! The controller in a program of one's own: with a hook that sees what it does, and a stop. To run anywhere, it
//! brings a simulated kcp along; against a real one, only the client is another.
//!
//! ```sh
//! cargo run --example controller --features latest,shell,sim
//! ```

use std::time::Duration;

use apibinding::api::Phase;
use apibinding::front::{Front, Settings};
use apibinding::shell::Controller;
use apibinding::sim::{Builder, Kcp};
use apibinding::snapshot::{Binding, Layout, Origin};
use kube::{Client, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A kcp in which ten bindings wait in two workspaces.
    let mut kcp = Kcp::new(7);
    kcp.load(Origin::Local, Builder::new(7).layout(Layout::Single).crowded(false).workspaces(2).bindings(10).build());
    let settings = Settings { establishing: Duration::from_millis(100), ..Settings::default() };
    let front = Front::serve(kcp, settings)?;

    let mut config = Config::new(front.url().parse()?);
    config.default_retry = false; // when to try again is the controller's business
    let controller = Controller::new(Client::try_from(config)?)
        .workers(4)
        .hook(|key, effect, outcome| println!("{key}: {effect}: {outcome}"))
        .start()
        .await?;

    // Another program would stop on Ctrl-C.
    let handle = controller.handle();
    let all_at_rest = async {
        while !(handle.is_idle() && front.is_at_rest()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    controller.run(all_at_rest).await?;

    let (known, keys) = (handle.snapshot(), handle.snapshot().bindings());
    let is_bound = |binding: &&Binding| binding.status.phase == Phase::Bound;
    let bound = keys.iter().filter_map(|key| known.binding(key)).filter(is_bound).count();
    println!("{bound} of {} are bound", keys.len());
    Ok(())
}
