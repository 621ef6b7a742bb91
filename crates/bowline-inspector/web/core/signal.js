// Reactive values: signals, computed values, and effects that run once per animation frame.

/**
 * @template T
 * @typedef {{ (): T, peek(): T }} Readable a value that an effect follows when it calls it
 */
/**
 * @template T
 * @typedef {Readable<T> & { set(value: T): void, update(change: (value: T) => T): void }} Signal
 */

/** @typedef {{ version: number, observers: Set<Observer>, refresh(): void }} Source */
/** @typedef {{ sources: Map<Source, number>, stale(): void }} Observer */

/** @type {Observer | null} */
let observer = null;
/** @type {Array<() => void> | null} */
let owner = null;
/** @type {Set<Effect>} */
const queue = new Set();
let scheduled = false;
let batches = 0;

/** @param {Source} source */
function follow(source) {
  if (!observer) return;
  observer.sources.set(source, source.version);
  source.observers.add(observer);
}

/** @param {Observer} self */
function unfollow(self) {
  for (const source of self.sources.keys()) source.observers.delete(self);
  self.sources.clear();
}

/**
 * Returns whether a source of `self` has another value than the one `self` saw.
 * @param {Observer} self
 */
function changed(self) {
  for (const [source, seen] of self.sources) {
    source.refresh();
    if (source.version !== seen) return true;
  }
  return false;
}

/**
 * @template T
 * @param {Observer} self
 * @param {() => T} run
 * @returns {T}
 */
function observe(self, run) {
  const before = observer;
  unfollow(self);
  observer = self;
  try {
    return run();
  } finally {
    observer = before;
  }
}

/**
 * Holds a value that can be set.
 * @template T
 * @param {T} value
 * @returns {Signal<T>}
 */
export function signal(value) {
  /** @type {Source} */
  const source = { version: 0, observers: new Set(), refresh() {} };
  const read = () => {
    follow(source);
    return value;
  };
  const set = (/** @type {T} */ next) => {
    if (Object.is(next, value)) return;
    value = next;
    source.version += 1;
    for (const each of [...source.observers]) each.stale();
  };
  return Object.assign(read, {
    peek: () => value,
    set,
    update: (/** @type {(value: T) => T} */ change) => set(change(value)),
  });
}

/**
 * Derives a value. It is computed when it is read, and again only after one of its sources changed.
 * @template T
 * @param {() => T} derive
 * @returns {Readable<T>}
 */
export function computed(derive) {
  /** @type {T} */
  let value;
  let state = /** @type {"new" | "stale" | "fresh"} */ ("new");
  /** @type {Source & Observer} */
  const self = {
    version: 0,
    observers: new Set(),
    sources: new Map(),
    stale() {
      if (state !== "fresh") return;
      state = "stale";
      for (const each of [...self.observers]) each.stale();
    },
    refresh() {
      if (state === "fresh") return;
      if (state === "stale" && !changed(self)) {
        state = "fresh";
        return;
      }
      const next = observe(self, derive);
      state = "fresh";
      if (self.version > 0 && Object.is(next, value)) return;
      value = next;
      self.version += 1;
    },
  };
  owner?.push(() => unfollow(self));
  return Object.assign(
    () => {
      self.refresh();
      follow(self);
      return value;
    },
    {
      peek() {
        self.refresh();
        return value;
      },
    },
  );
}

class Effect {
  /** @param {() => void} run */
  constructor(run) {
    this.run = run;
    /** @type {Map<Source, number>} */
    this.sources = new Map();
    /** @type {Array<() => void>} */
    this.owned = [];
    this.ended = false;
  }

  stale() {
    queue.add(this);
    schedule();
  }

  start() {
    if (this.ended) return;
    dispose(this.owned);
    const before = owner;
    owner = this.owned;
    try {
      observe(this, this.run);
    } finally {
      owner = before;
    }
  }

  end() {
    this.ended = true;
    queue.delete(this);
    unfollow(this);
    dispose(this.owned);
  }
}

/** @param {Array<() => void>} owned */
function dispose(owned) {
  for (const each of owned.splice(0).reverse()) each();
}

function schedule() {
  if (scheduled || batches > 0) return;
  scheduled = true;
  // A hidden tab gets no animation frames.
  if (typeof requestAnimationFrame === "function" && !document.hidden) requestAnimationFrame(flush);
  else setTimeout(flush, 0);
}

// A frame that was asked for before the tab was hidden comes when it is shown again; what is drawn must be right before that.
if (typeof document !== "undefined") {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && scheduled) setTimeout(flush, 0);
  });
}

/** Runs the effects that wait for the next frame. */
export function flush() {
  scheduled = false;
  // An effect may set signals. A cycle ends after this many rounds instead of blocking the page.
  for (let round = 0; queue.size > 0 && round < 32; round += 1) {
    const waiting = [...queue];
    queue.clear();
    for (const each of waiting) {
      if (each.ended || !changed(each)) continue;
      try {
        each.start();
      } catch (error) {
        console.error(error);
      }
    }
  }
  if (queue.size === 0) return;
  queue.clear();
  console.error("effects set what they read, again and again");
}

/**
 * Runs now, and again in the frame after one of the values that it read changed. Returns the function that ends it.
 * @param {() => void} run
 */
export function effect(run) {
  const self = new Effect(run);
  owner?.push(() => self.end());
  self.start();
  return () => self.end();
}

/**
 * Sets several signals before the next frame is scheduled.
 * @param {() => void} run
 */
export function batch(run) {
  batches += 1;
  try {
    run();
  } finally {
    batches -= 1;
    if (batches === 0 && queue.size > 0) schedule();
  }
}

/**
 * Runs `create` and returns its value with the function that ends every effect created inside.
 * @template T
 * @param {() => T} create
 * @returns {[T, () => void]}
 */
export function scope(create) {
  /** @type {Array<() => void>} */
  const owned = [];
  const before = owner;
  const seen = observer;
  owner = owned;
  observer = null;
  try {
    return [create(), () => dispose(owned)];
  } finally {
    owner = before;
    observer = seen;
  }
}

/**
 * Registers what to do when the current scope or effect ends.
 * @param {() => void} run
 */
export function cleanup(run) {
  owner?.push(run);
}

/**
 * Reads values without following them.
 * @template T
 * @param {() => T} read
 * @returns {T}
 */
export function untracked(read) {
  const before = observer;
  observer = null;
  try {
    return read();
  } finally {
    observer = before;
  }
}
