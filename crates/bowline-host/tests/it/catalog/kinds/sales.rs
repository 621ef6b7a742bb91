//! Money and customers.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 2] = [
    Kind {
        services: &[
            service("stripe", "Stripe", Style::Snake, 0, &[]),
            service("paypal", "PayPal", Style::Camel, 1, &[("subscription", "billing agreement")]),
            service("square", "Square", Style::NounFirst, 2, &[("coupon", "discount")]),
        ],
        objects: [
            Object(
                "payment",
                "money taken from a card or account",
                "amount currency customer",
                [
                    "list",
                    "get",
                    "create",
                    "capture=Take the money of {a} that was authorized.",
                    "void=Cancel {a} that was not captured yet.",
                ],
            ),
            Object(
                "refund",
                "money given back to the payer",
                "payment amount reason",
                ["list", "get", "create", "update", "cancel=Cancel {a} that is pending."],
            ),
            Object("customer", "somebody who pays", "name email", CRUD),
            Object(
                "subscription",
                "a payment that repeats each month or year",
                "plan customer trial",
                [
                    "list",
                    "get",
                    "create",
                    "pause=Pause collection of {a}.",
                    "cancel=End {a} now or at the end of the period.",
                ],
            ),
            Object(
                "invoice",
                "a bill with items and a due date",
                "customer items due",
                ["list", "get", "create", "send=Email {a} to the customer.", "void=Declare {a} void."],
            ),
            Object(
                "coupon",
                "a reduction in percent or as an amount",
                "percent_off amount_off expires",
                CRUD,
            ),
            Object(
                "dispute",
                "a chargeback raised by a bank",
                "payment reason status",
                [
                    "list",
                    "get",
                    "contest=Submit evidence against {a}.",
                    "accept=Accept {a} and lose the money.",
                    "update",
                ],
            ),
            Object(
                "payout",
                "a transfer to the merchant's bank account",
                "amount arrives",
                [
                    "list",
                    "get",
                    "create",
                    "cancel=Cancel {a} that did not leave yet.",
                    "reverse=Take {a} back.",
                ],
            ),
            Object("product", "what is sold", "name price", CRUD),
            Object(
                "payment link",
                "a URL where somebody can pay",
                "product quantity",
                ["list", "get", "create", "update", "deactivate=Close {a}."],
            ),
        ],
    },
    Kind {
        services: &[
            service(
                "salesforce",
                "Salesforce",
                Style::Camel,
                2,
                &[("company", "account"), ("deal", "opportunity")],
            ),
            service("hubspot", "HubSpot", Style::Snake, 0, &[]),
            service(
                "pipedrive",
                "Pipedrive",
                Style::Kebab,
                1,
                &[("contact", "person"), ("company", "organization")],
            ),
        ],
        objects: [
            Object(
                "contact",
                "a person one does business with",
                "name email company",
                ["search", "get", "create", "update", "merge=Merge two entries of the same person."],
            ),
            Object(
                "company",
                "an organization one does business with",
                "name domain industry",
                ["search", "get", "create", "update", "merge=Merge duplicates of {a}."],
            ),
            Object(
                "deal",
                "a possible sale with a value",
                "title value stage",
                ["list", "get", "create", "win=Mark {a} as won.", "lose=Mark {a} as lost, with the reason."],
            ),
            Object(
                "lead",
                "somebody who may become a customer",
                "name source score",
                [
                    "list",
                    "get",
                    "create",
                    "convert=Convert {a} to a contact and a sale.",
                    "assign=Give {a} to a sales person.",
                ],
            ),
            Object("activity", "a call, a meeting or a task with somebody", "type due contact", CRUD),
            Object("pipeline", "the stages of selling", "name stages", CRUD),
            Object("note", "free text about somebody", "text contact", CRUD),
            Object(
                "campaign",
                "marketing to many people",
                "name audience budget",
                ["list", "get", "create", "launch=Start {a}.", "report=Opens, clicks and revenue of {a}."],
            ),
            Object(
                "quote",
                "an offer with prices",
                "items discount valid_until",
                ["list", "get", "create", "send=Send {a} to the customer for signature.", "delete"],
            ),
            Object("email template", "text for mails that are sent often", "subject body", CRUD),
        ],
    },
];
