"""What short conversations of everyday work leave behind."""

from __future__ import annotations

from tests.support.extraction import UPLOADS, memories, records


def test_an_aside_is_neither_a_decision_nor_a_topic() -> None:
    aside = "Great, that works. By the way, the coffee machine on floor 2 is broken again."
    reply = "Noted, nothing I can do about the coffee machine."
    made = memories(*UPLOADS, ("user", aside), ("assistant", reply))
    assert made
    assert not any("coffee" in memory.content for memory in made)


def test_a_rule_that_is_said_in_passing_is_kept_without_its_opening() -> None:
    (rule,) = memories(("user", "By the way, never commit the generated clients here."))
    assert rule.content == "Never commit the generated clients here."


def test_options_that_the_user_objects_to_are_refused_each_with_its_reason() -> None:
    options = "Three options: (1) one table per tenant, (2) row security, (3) a schema per tenant."
    (record,) = records(
        ("user", "How do we keep the tenants' orders apart in Postgres?"),
        ("assistant", options),
        ("user", "A table per tenant is too much to migrate. Row security is slow on our reports."),
        ("assistant", "Then a schema per tenant, created by `tenants/provision.py`. Shall I?"),
        ("user", "Yes, and name the schemas by the tenant's id."),
        ("assistant", "Decision: each tenant has a schema of its own, named by the tenant's id."),
    )
    assert record.record is not None
    refused = {part["proposal"]: part["reason"] for part in record.record["refused"]}
    assert refused == {
        "one table per tenant": "A table per tenant is too much to migrate.",
        "row security": "Row security is slow on our reports.",
    }
    assert not any("too much" in text for text in record.record["decided"])


def test_a_short_choice_stands_in_the_record_with_its_reason() -> None:
    (record,) = records(
        ("user", "Should we use Redis or Postgres for the job queue?"),
        ("assistant", "Redis is the common choice. Postgres avoids another server. Which one?"),
        ("user", "Let's go with Postgres. We don't want to operate another server."),
        ("assistant", "The queue polls every 500 ms and takes 10 jobs at once."),
    )
    assert "Let's go with Postgres. We don't want to operate" in record.content


def test_an_answer_that_refuses_a_proposal_stays_in_its_topic() -> None:
    (record,) = records(
        ("user", "Deleting a team leaves its invoices visible in the search index. Fix it."),
        ("assistant", "I could remove them in the nightly reindex job."),
        ("user", "No, that's the wrong place: it must happen at once, privacy says."),
        ("assistant", "Then I publish a TeamDeleted event, and the indexer removes them."),
    )
    assert record.content.startswith("Deleting a team leaves its invoices visible")
    assert "Refused: Remove them in the nightly reindex job." in record.content


def test_sentences_that_begin_with_small_letters_are_told_apart() -> None:
    rename = "works. next: please rename the job `sync-all` to `nightly-sync`"
    *_, record = records(
        ("user", "The nightly job does not start, can you check its cron line?"),
        ("assistant", "Fixed the cron line in jobs.yaml: it had six fields."),
        ("user", rename),
        ("assistant", "Renamed in jobs.yaml and in the dashboards."),
    )
    assert "Works." not in record.content


def test_a_lesson_that_is_named_so_is_a_rule() -> None:
    said = "ok. lesson: any pool change needs a load test on staging first"
    (rule,) = memories(("user", said), ("assistant", "Agreed."))
    assert rule.content == "Lesson: any pool change needs a load test on staging first."


def test_facts_to_remember_stay_together() -> None:
    (note,) = memories(
        ("user", "FYI: staging uses the database of us-east-1. The VPN is needed for both."),
        ("assistant", "Thanks, I'll keep that in mind."),
    )
    assert note.content.endswith("The VPN is needed for both.")


def test_an_order_about_it_keeps_what_it_means() -> None:
    said = "we call it 'workspace' but the code says 'tenant'. don't rename it before the audit"
    (rule,) = memories(("user", said), ("assistant", "OK, I leave the code as it is."))
    assert "'tenant'. Don't rename it" in rule.content


def test_a_proposal_that_is_chosen_later_is_decided_and_the_other_refused() -> None:
    (record,) = records(
        ("user", "I want to redesign our feature flags. Every service reads a file at startup."),
        ("assistant", "My suggestion: flags live in a Postgres table that each service polls."),
        ("user", "Why not LaunchDarkly?"),
        ("assistant", "It would work, but the data leaves the EU."),
        ("user", "Right, data has to stay in the EU. Go with the table."),
        ("assistant", "Implemented: `flags/poller.py` polls the table every 30 s."),
    )
    assert record.record is not None
    assert any("flags live in a Postgres table" in text for text in record.record["decided"])
    assert record.record["refused"] == [
        {"proposal": "LaunchDarkly", "reason": "It would work, but the data leaves the EU."}
    ]


def test_the_answer_to_a_question_of_how_is_one_memory_that_is_found_by_the_question() -> None:
    (skill,) = memories(
        ("user", "how do I run only the integration tests?"),
        ("assistant", "Run `make test-int`; it needs Docker and takes about 4 minutes."),
    )
    assert skill.record is not None
    assert skill.record["problem"] == "How do I run only the integration tests?"
    assert "`make test-int`" in skill.content


def test_what_somebody_tells_of_a_setup_stands_in_the_record_of_it() -> None:
    (record,) = records(
        ("user", "The import is done. The endpoint is at POST /hooks/import. It checks a token."),
        (
            "assistant",
            "The endpoint checks the token by `hmac.compare_digest()`, which prevents timing "
            "attacks. Make sure `IMPORT_TOKEN` is in the environment.",
        ),
    )
    assert "POST /hooks/import" in record.content


def test_what_a_commit_did_is_told_by_the_commit_and_not_by_talk_of_it() -> None:
    question = "Was the `id()` call removed from `lists.py` in 471dad1 because it was slow?"
    answer = "Yes. The call went through the whole `BarrelList`, since it had no length of its own."
    assert not records(("user", question), ("assistant", answer))
    alike = question.replace(" in 471dad1", "")
    assert records(("user", alike), ("assistant", answer))
