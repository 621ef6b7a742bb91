//! Shops, and what there is to know of places.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 2] = [
    Kind {
        services: &[
            service("shopify", "Shopify", Style::Camel, 1, &[]),
            service("woocommerce", "WooCommerce", Style::Snake, 3, &[("collection", "category")]),
            service(
                "magento",
                "Magento",
                Style::Kebab,
                0,
                &[("collection", "category"), ("return", "return merchandise authorization")],
            ),
        ],
        objects: [
            Object(
                "product",
                "an article of the shop",
                "title price variants",
                ["search", "get", "create", "update", "publish=Show {a} in the shop."],
            ),
            Object(
                "order",
                "what somebody bought",
                "customer items address",
                ["list", "get", "create", "cancel=Cancel {a} before it leaves.", "search"],
            ),
            Object(
                "cart",
                "what somebody is about to buy",
                "items customer",
                ["list", "get", "create", "update", "recover=Write to somebody who left {a} behind."],
            ),
            Object(
                "inventory level",
                "how many of an article are in stock at a place",
                "sku location quantity",
                [
                    "list",
                    "get",
                    "adjust=Add to or take from the stock.",
                    "set=Set the stock to a number.",
                    "transfer=Move stock to another place.",
                ],
            ),
            Object("discount", "a reduction for buyers", "code percent ends", CRUD),
            Object(
                "shipment",
                "a parcel on its way",
                "carrier order tracking",
                [
                    "list",
                    "get",
                    "create",
                    "label=Make the shipping label of {a} to print.",
                    "track=Where {a} is now.",
                ],
            ),
            Object(
                "return",
                "goods that come back",
                "order items reason",
                [
                    "list",
                    "get",
                    "create",
                    "approve=Approve {a} and give the money back.",
                    "reject=Reject {a}.",
                ],
            ),
            Object(
                "review",
                "what a buyer thinks of an article",
                "rating text",
                [
                    "list",
                    "get",
                    "reply=Answer {a} in public.",
                    "hide=Hide {a} that breaks the rules.",
                    "delete",
                ],
            ),
            Object("customer", "somebody with an account in the shop", "name email", CRUD),
            Object("collection", "articles that belong together", "title rules", CRUD),
        ],
    },
    Kind {
        services: &[service("atlas", "Atlas", Style::Snake, 0, &[])],
        objects: [
            Object(
                "forecast",
                "the weather of the coming days: temperature, rain, wind",
                "place days units",
                [
                    "get",
                    "hourly=Weather hour by hour.",
                    "history=Weather of a past day.",
                    "compare=Compare the weather of two places.",
                    "alert=Be told when a {n} changes.",
                ],
            ),
            Object(
                "air quality",
                "how clean or polluted the air is, with pollen",
                "place",
                [
                    "get",
                    "history=Past pollution of a place.",
                    "map=Pollution on a map.",
                    "list",
                    "alert=Be told when pollution rises.",
                ],
            ),
            Object(
                "place",
                "an address or a point of interest",
                "name near",
                [
                    "search",
                    "get",
                    "geocode=Coordinates of an address.",
                    "reverse=Address at coordinates.",
                    "photos=Pictures of {a}.",
                ],
            ),
            Object(
                "route",
                "the way from one place to another, with distance and duration",
                "from to mode",
                [
                    "get",
                    "matrix=Travel times between many places.",
                    "optimize=Best order of many stops.",
                    "alternatives=Other ways to get there.",
                    "toll=What driving {a} costs.",
                ],
            ),
            Object(
                "elevation",
                "height above the sea",
                "place",
                [
                    "get",
                    "profile=Heights along a way.",
                    "contour=Lines of equal height.",
                    "slope=How steep it is.",
                    "list",
                ],
            ),
            Object(
                "tide",
                "high and low water at a coast",
                "place day",
                [
                    "get",
                    "station=Nearest {n} station.",
                    "list",
                    "current=Currents at a coast.",
                    "warn=Be told about floods.",
                ],
            ),
            Object(
                "sunrise",
                "when the sun rises and sets, and dusk",
                "place day",
                [
                    "get",
                    "moon=Phase of the moon.",
                    "golden=Best light for photographs.",
                    "list",
                    "shadow=Length of shadows.",
                ],
            ),
            Object(
                "severe weather warning",
                "an official warning of storm, flood or heat",
                "place",
                [
                    "list",
                    "get",
                    "subscribe=Be told of a new {n}.",
                    "map=Warnings on a map.",
                    "history=Past warnings.",
                ],
            ),
            Object(
                "traffic",
                "jams and closed roads",
                "place",
                [
                    "get",
                    "incidents=Accidents and road works.",
                    "camera=Picture of a road.",
                    "predict=Jams to expect at a time.",
                    "list",
                ],
            ),
            Object(
                "boundary",
                "the border of a country, city or district",
                "name level",
                [
                    "get",
                    "search",
                    "contains=Which district a point lies in.",
                    "area=How large it is.",
                    "list",
                ],
            ),
        ],
    },
];
