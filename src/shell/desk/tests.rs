use std::collections::BTreeSet;

use tokio::time::timeout;

use super::*;

/// A desk that is open, with no streams to wait for.
fn desk() -> Desk {
    let desk = Desk::new(Layout::Split, Config { bucket: None, ..Config::default() }, "root", BTreeSet::new(), false);
    desk.lead(true);
    desk
}

impl Desk {
    fn put(&self, key: &BindingKey) {
        self.add(&mut self.lock(), key.clone());
    }
}

fn key(name: &str) -> BindingKey {
    BindingKey::new("meadow", name)
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_years_gets_a_minute() {
    let desk = desk();
    desk.put(&key("geese"));
    let taken = desk.next().await;
    let at_least = Some(Duration::from_secs(i32::MAX as u64));
    desk.finish(&taken, Some(Retry::Backoff { at_least }));
    assert!(timeout(MOST - SECOND, desk.next()).await.is_err());
    assert_eq!(timeout(2 * SECOND, desk.next()).await, Ok(key("geese")));
}
