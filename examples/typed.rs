//! Types all the way: arguments that are checked before the function runs, and a result with a schema of its own.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client typed forecast '{"city": "Oslo", "days": 2}'`;
//! then with nine days, or in `kelvin`.

use bowline::prelude::*;

/// How to tell how warm it is.
#[data]
#[derive(Copy, Default)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

#[data]
struct Forecast {
    city: String,
    /// The highest temperature of each day.
    highs: Vec<f64>,
    unit: Unit,
}

/// Forecast the weather.
#[tool(title = "Forecast", read_only)]
fn forecast(
    /// Where.
    city: String,
    /// For how many days.
    #[schemars(range(min = 1, max = 7))]
    days: u32,
    #[serde(default)] unit: Unit,
) -> Result<Json<Forecast>> {
    if city.is_empty() {
        // Whatever goes wrong here, the model reads it and may try again.
        return Err(Error::tool("which city?"));
    }
    let celsius = (0..days).map(|day| 20.5 + f64::from(day));
    let highs = match unit {
        Unit::Celsius => celsius.collect(),
        Unit::Fahrenheit => celsius.map(|high| high.mul_add(1.8, 32.0)).collect(),
    };
    Ok(Json(Forecast { city, highs, unit }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("typed").tool(forecast::tool()).serve_stdio().await
}
