//! The sample database: a small shop with fixed data.

use super::error::Error;
use rusqlite::{Connection, OpenFlags, Result, params};
use std::{fs::File, path::Path};

const SCHEMA: &str = "
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL,
    since TEXT NOT NULL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL,
    price REAL NOT NULL CHECK (price >= 0)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    ordered_on TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open'
);
CREATE TABLE order_lines (
    order_id INTEGER NOT NULL REFERENCES orders (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL,
    PRIMARY KEY (order_id, product_id)
);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE VIEW revenue AS
    SELECT category, round(sum(price * quantity), 2) AS total
    FROM order_lines JOIN products ON products.id = product_id
    GROUP BY category;
";

const FIRST: [&str; 10] = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gia", "Hugo", "Ida", "Jon"];
const LAST: [&str; 8] = ["Abel", "Berg", "Costa", "Duval", "Eriksen", "Fuchs", "Grant", "Hill"];
const CITIES: [&str; 6] = ["Lisbon", "Oslo", "Ghent", "Turin", "Galway", "Graz"];
const STATUSES: [&str; 4] = ["open", "paid", "shipped", "returned"];
const PRODUCTS: [(&str, &str, f64); 12] = [
    ("Hemp rope", "rope", 14.5),
    ("Cotton line", "rope", 9.9),
    ("Mooring line", "rope", 42.0),
    ("Brass shackle", "fittings", 7.25),
    ("Snap hook", "fittings", 5.6),
    ("Cleat", "fittings", 12.0),
    ("Block", "fittings", 31.4),
    ("Marlinspike", "tools", 18.0),
    ("Rigging knife", "tools", 27.9),
    ("Sail needle", "tools", 2.2),
    ("Book of knots", "books", 22.0),
    ("Tide tables", "books", 15.8),
];
const CUSTOMERS: u32 = 40;
const ORDERS: u32 = 120;

/// A deterministic pseudo-random sequence.
struct Sequence(u32);

impl Sequence {
    fn draw(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % below.max(1)
    }

    fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        let index = self.draw(u32::try_from(choices.len()).unwrap_or(1));
        choices.get(index as usize).copied().unwrap_or_default()
    }

    fn day(&mut self, year: u32) -> String {
        format!("{year}-{:02}-{:02}", 1 + self.draw(12), 1 + self.draw(28))
    }
}

/// Fills an empty database.
pub(super) fn fill(connection: &Connection) -> Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(SCHEMA)?;
    let mut sequence = Sequence(1);
    for id in 1..=CUSTOMERS {
        let name = format!("{} {}", sequence.one_of(&FIRST), sequence.one_of(&LAST));
        transaction.execute(
            "INSERT INTO customers VALUES (?1, ?2, ?3, ?4)",
            params![id, name, sequence.one_of(&CITIES), sequence.day(2023)],
        )?;
    }
    for (id, (name, category, price)) in (1u32..).zip(PRODUCTS) {
        transaction
            .execute("INSERT INTO products VALUES (?1, ?2, ?3, ?4)", params![id, name, category, price])?;
    }
    let products = u32::try_from(PRODUCTS.len()).unwrap_or(1);
    for id in 1..=ORDERS {
        transaction.execute(
            "INSERT INTO orders VALUES (?1, ?2, ?3, ?4)",
            params![id, 1 + sequence.draw(CUSTOMERS), sequence.day(2024), sequence.one_of(&STATUSES)],
        )?;
        let first = sequence.draw(products);
        for line in 0..=sequence.draw(3) {
            transaction.execute(
                "INSERT INTO order_lines VALUES (?1, ?2, ?3)",
                params![id, 1 + (first + line) % products, 1 + sequence.draw(5)],
            )?;
        }
    }
    transaction.commit()
}

/// Creates a file with the sample database. Fails if the file exists.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let cannot = |reason: &dyn std::fmt::Display| {
        Error::new(format!("cannot create the sample database `{}`: {reason}", path.display()))
    };
    File::create_new(path).map_err(|error| cannot(&error))?;
    let filled = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|connection| fill(&connection));
    filled.map_err(|error| cannot(&error))
}
