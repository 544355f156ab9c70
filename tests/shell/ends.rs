//! Nothing goes wrong: the end is the one of a simulation.

use apibinding::shell::Controller;
use apibinding::sim::Builder;
use apibinding::snapshot::Layout;

use crate::referee::Referee;
use crate::stage::{Actor, assert_nothing_left, assert_quiet, client, rest};
use crate::worlds::{End, World};

/// Plays a world to its end.
async fn play(world: &World, expected: &End, what: &str) -> End {
    let front = world.front();
    let mut referee = Referee::new(&front);
    let controller = Controller::new(client(&front)).layout(world.layout).workers(4);
    let actor = Actor::start(controller.clone()).await;
    rest(&front, &[&actor]).await;
    let end = End::of_front(&front);
    end.assert_is(expected, what);
    referee.look(&front);
    referee.created();
    assert_quiet(&front).await;
    assert_eq!(actor.foreign_writes(), 0, "{what}: its own writes are nobody else's");
    assert_eq!(actor.handle.restless(), 0, "{what}");
    actor.stop().await;
    assert_nothing_left(&front, controller).await;
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kcp_that_starts_gets_its_bindings() {
    let world = World::bootstrap();
    let end = play(&world, &world.simulated(), "bootstrap").await;
    assert_eq!((end.bindings(), end.bound()), (8, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_of_every_kind_end_as_in_a_simulation() {
    for layout in [Layout::Single, Layout::Split] {
        let end = play(&World::recorded(layout), World::recorded_end(layout), &format!("recorded, {layout:?}")).await;
        assert_eq!(end.bindings(), 28);
        assert!(end.bound() > 15 && end.bound() < 28, "{} bound", end.bound());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_world_of_the_readme_ends_as_in_a_simulation() {
    let world = World::example();
    play(&world, &world.simulated(), "example").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_worlds_end_as_in_a_simulation() {
    let mut bound = 0;
    for seed in crate::stage::seed()..crate::stage::seed() + 16 {
        let layout = if seed % 2 == 0 { Layout::Single } else { Layout::Split };
        let world = World::built(&Builder::new(seed), layout);
        bound += play(&world, &world.simulated(), &format!("built of {seed}, {layout:?}")).await.bound();
    }
    assert!(bound > 16, "{bound} bound");
}
