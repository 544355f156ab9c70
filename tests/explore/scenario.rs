//! The worlds that are searched.

use apibinding::snapshot::Layout;

use super::world::Deed::{self, *};

/// A world: who is there, what users do to it, and how much may go wrong.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub layout: Layout,
    /// Too large for every day.
    pub is_large: bool,
    /// The bindings that are there at first. Others are made by scripts.
    pub birds: usize,
    /// The bound CRD is there and serves.
    pub serves: bool,
    /// Start where these bindings have come to rest, and the first controller with them.
    pub is_settled: bool,
    pub controllers: usize,
    /// One takes keys, until the other takes over. Else both do, from the start.
    pub has_leader: bool,
    pub workers: usize,
    /// Workers may also plan on their own snapshot: as it was when they planned last, and what they heard since.
    pub has_clones: bool,
    /// What users do, each script in its order, at any time.
    pub scripts: Vec<Vec<Deed>>,
    /// How often a worker gives up waiting for an answer.
    pub losses: u8,
    /// How often a controller dies.
    pub crashes: u8,
    /// After how many writes nobody takes a key any more who has not heard of all of them. Two that see different
    /// things, for as long as they do, undo each other's work.
    pub patience: u32,
    /// How often time passes.
    pub ticks: u8,
}

/// All scenarios in a layout.
pub fn all(layout: Layout) -> Vec<Scenario> {
    let is_split = layout == Layout::Split;
    // One controller whose workers plan on clones of different age.
    let one = |name| Scenario {
        name,
        layout,
        is_large: false,
        birds: 2,
        serves: true,
        is_settled: false,
        controllers: 1,
        has_leader: false,
        workers: 2,
        has_clones: true,
        scripts: Vec::new(),
        losses: 0,
        crashes: 0,
        // In the single layout the clean-up writes too, and comes to no end before it is heard.
        patience: if is_split { 12 } else { 2 },
        ticks: 0,
    };
    // Two controllers that hear of different things.
    let two = |name| Scenario { controllers: 2, workers: 1, has_clones: false, patience: 4, ..one(name) };
    let again = || vec![vec![Delete(0), Create(0)]];
    let crd = || vec![vec![AdmitCrd, StoreCrd]];
    let comes_and_goes = || vec![vec![AdmitCrd, StoreCrd, DeleteCrd]];
    let mut scenarios = vec![
        one("two bindings at once"),
        Scenario { losses: 1, crashes: 1, ..one("two bindings, a crash, a lost answer") },
        Scenario { scripts: again(), ..one("two bindings, one made again") },
        Scenario { is_settled: true, losses: 1, scripts: again(), ..one("a bound one made again, a lost answer") },
        Scenario { is_settled: true, crashes: 1, scripts: again(), ..one("a bound one made again, a crash") },
        Scenario {
            birds: 1,
            is_settled: true,
            crashes: 1,
            scripts: vec![vec![Delete(0)]],
            ..one("the only one deleted, a crash")
        },
        Scenario { birds: 3, ..one("three bindings at once") },
        Scenario { birds: 3, is_settled: true, scripts: again(), ..one("three bindings, the bound one made again") },
        Scenario {
            scripts: vec![vec![DropResource, OfferResource]],
            ..one("an export drops the resource for a while")
        },
        Scenario { serves: false, crashes: 1, ..one("the bound CRD comes, a crash") },
        Scenario { birds: 1, ticks: 1, scripts: crd(), ..one("a CRD comes") },
        Scenario { has_clones: false, ticks: 2, scripts: crd(), ..one("a CRD comes, two bindings") },
        Scenario { birds: 1, workers: 1, ticks: 2, scripts: comes_and_goes(), ..one("a CRD comes and goes") },
        Scenario { crashes: 1, patience: 12, ..two("two controllers, one dies") },
        Scenario {
            patience: if is_split { 4 } else { 2 },
            scripts: vec![vec![DropResource]],
            ..two("two controllers, an export drops the resource")
        },
        Scenario {
            has_leader: true,
            is_settled: true,
            is_large: !is_split,
            patience: if is_split { 4 } else { 2 },
            scripts: again(),
            ..two("one takes over, a bound one made again")
        },
    ];
    let large = vec![
        Scenario { losses: 1, crashes: 1, patience: 12, ..two("two controllers, one dies, a lost answer") },
        Scenario {
            has_leader: true,
            patience: if is_split { 4 } else { 2 },
            scripts: vec![vec![Delete(0)]],
            ..two("one takes over, one deleted")
        },
        Scenario {
            has_leader: true,
            scripts: vec![vec![DropResource, OfferResource]],
            ..two("one takes over, an export drops the resource for a while")
        },
        Scenario { birds: 1, workers: 1, ticks: 2, scripts: [crd(), crd()].concat(), ..one("a CRD comes twice") },
        Scenario { ticks: 1, scripts: crd(), ..one("a CRD comes, two bindings, workers on clones") },
        Scenario {
            has_clones: false,
            ticks: 2,
            scripts: comes_and_goes(),
            ..one("a CRD comes and goes, two bindings")
        },
        Scenario {
            workers: 1,
            has_clones: false,
            losses: 1,
            crashes: 1,
            scripts: again(),
            ..one("one of two made again by one worker, a crash, a lost answer")
        },
        Scenario {
            is_settled: true,
            losses: 1,
            crashes: 1,
            scripts: again(),
            ..one("a bound one made again, a crash, a lost answer")
        },
        Scenario {
            is_settled: true,
            scripts: vec![vec![Delete(0), Create(0), Delete(0)]],
            ..one("a bound one made again and deleted")
        },
    ];
    scenarios.extend(large.into_iter().map(|scenario| Scenario { is_large: true, ..scenario }));
    if is_split {
        // In the single layout the clean-up, which answers each write, makes these too large; and nobody is asked there
        // whether a binding exists.
        let only_split = [
            Scenario { patience: 1, scripts: vec![vec![Delete(0)]], ..two("two controllers, one deleted") },
            Scenario {
                birds: 1,
                has_leader: true,
                crashes: 1,
                scripts: vec![vec![Create(1), Delete(1)]],
                ..two("one takes over, a new one comes and goes")
            },
        ];
        scenarios.extend(only_split.map(|scenario| Scenario { is_large: true, ..scenario }));
    }
    scenarios
}
