//! A simulated store that fails in every way a real one does, by a seed.
//!
//! A [`World`] has one store and any number of nodes. Each node has a [`SimStore`], which is its connection: it is slow,
//! fails before or after a write, applies a write long after it gave up, and can be cut off. Hints get lost and arrive twice.
//! The clock of the store can jump.
//!
//! The same seed gives the same run if tokio's clock is paused and the runtime has one thread:
//!
//! ```
//! use std::time::Duration;
//! use bowline_store::{Key, Put, Records};
//! use bowline_testing::sim::{Faults, World};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! tokio::time::pause();
//! let world = World::new(7, Faults::default());
//! let node = world.node();
//! let put = Put::create(Key::new("a")?, "1", Duration::from_secs(60));
//! // It may fail; the answer says whether the record may exist.
//! let answer = node.put(put).await;
//! world.heal();
//! assert!(node.get(&[Key::new("a")?]).await.is_ok());
//! # Ok(())
//! # }
//! ```

mod bus;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_store::{Hints, Memory};
use tokio::time::Instant;

pub use store::SimStore;

/// What goes wrong, and how often. Shares are out of 1,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The longest time between a node and the store, in each direction.
    pub delay: Duration,
    /// The share of operations that fail and are not applied.
    pub before: u32,
    /// The share of writes that are applied, and whose answer gets lost.
    pub after: u32,
    /// The share of writes that are applied after the node gave up.
    pub late: u32,
    /// How late such a write is applied, at most.
    pub lateness: Duration,
    /// The share of hints that get lost for one node.
    pub lost_hints: u32,
    /// The share of hints that reach a node twice.
    pub repeated_hints: u32,
}

impl Default for Faults {
    /// A bad day: 3 % failures before, 3 % after, 2 % late writes, a third of the hints lost.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(200),
            before: 30,
            after: 30,
            late: 20,
            lateness: Duration::from_secs(30),
            lost_hints: 300,
            repeated_hints: 100,
        }
    }
}

impl Faults {
    /// Nothing goes wrong, and nothing takes time.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        before: 0,
        after: 0,
        late: 0,
        lateness: Duration::ZERO,
        lost_hints: 0,
        repeated_hints: 0,
    };
}

/// One store and its nodes.
#[derive(Debug, Clone)]
pub struct World {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    memory: Arc<Memory>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    faults: Faults,
    nodes: Vec<Link>,
}

/// The connection of one node.
#[derive(Debug)]
struct Link {
    hints: Hints,
    cut_until: Option<Instant>,
}

/// How an operation reaches the store.
#[derive(Debug, Clone, Copy)]
enum Delivery {
    /// It is cut off: nothing arrives, and the node times out.
    Cut,
    /// It fails and is not applied.
    Before,
    /// It is applied, and the answer gets lost.
    After,
    /// It is applied after this time, when the node has given up.
    Late(Duration),
    /// It is applied and answered.
    Done,
}

impl World {
    /// A world whose faults follow from a seed.
    pub fn new(seed: u64, faults: Faults) -> Self {
        let state = State { random: fastrand::Rng::with_seed(seed), faults, nodes: Vec::new() };
        Self { shared: Arc::new(Shared { memory: Arc::new(Memory::new()), state: Mutex::new(state) }) }
    }

    /// Connects another node.
    pub fn node(&self) -> SimStore {
        let mut state = self.shared.state();
        state.nodes.push(Link { hints: Hints::new(), cut_until: None });
        SimStore::new(Arc::clone(&self.shared), state.nodes.len() - 1)
    }

    /// The store itself, without faults.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.shared.memory
    }

    /// Cuts a node off, as a partition does. Its operations time out.
    pub fn cut(&self, node: &SimStore, time: Duration) {
        if let Some(link) = self.shared.state().nodes.get_mut(node.index()) {
            link.cut_until = Some(Instant::now() + time);
        }
    }

    /// Moves the clock of the store.
    pub fn move_clock(&self, millis: i64) {
        self.shared.memory.move_clock(millis);
    }

    /// Ends all faults. Late writes that are under way still arrive.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.faults = Faults::NONE;
        for link in &mut state.nodes {
            link.cut_until = None;
        }
    }

    /// A random number below `below`, from the seed of the world.
    pub fn random(&self, below: u64) -> u64 {
        self.shared.state().random.u64(..below.max(1))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time to the store or back.
    fn delay(&self) -> Duration {
        let mut state = self.state();
        let most = u64::try_from(state.faults.delay.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(state.random.u64(..=most))
    }

    fn delivery(&self, node: usize, writes: bool) -> Delivery {
        let mut state = self.state();
        if state.nodes.get(node).and_then(|link| link.cut_until).is_some_and(|until| until > Instant::now()) {
            return Delivery::Cut;
        }
        let faults = state.faults;
        let roll = state.random.u32(..1_000);
        let after = if writes { faults.after } else { 0 };
        let late = if writes { faults.late } else { 0 };
        if roll < faults.before {
            Delivery::Before
        } else if roll < faults.before + after {
            Delivery::After
        } else if roll < faults.before + after + late {
            let most = u64::try_from(faults.lateness.as_millis()).unwrap_or(u64::MAX);
            Delivery::Late(Duration::from_millis(state.random.u64(..=most)))
        } else {
            Delivery::Done
        }
    }
}
