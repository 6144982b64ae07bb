"""Entities that share most of their memories form one topic."""

from __future__ import annotations

from uuid import UUID

from reverie.domain.graph.clustering import TopicCentre, cluster_topics


def _centre(name: str, *memories: int) -> TopicCentre:
    return TopicCentre(name, frozenset(UUID(int=number) for number in memories))


def test_clusters_that_share_most_memories_are_one_topic_named_by_the_most_used() -> None:
    pool = _centre("src/pool.py", 1, 2, 3, 4, 5)
    driver = _centre("asyncpg", 1, 2, 3, 6)  # 3 of 6: another topic
    database = _centre("postgresql", 2, 3, 4, 5)  # 4 of 5: the same
    found = cluster_topics([database, driver, pool])
    assert [(one.key.partition("-")[0], len(one.members)) for one in found] == [
        ("topic:src", 5),
        ("topic:asyncpg", 4),
    ]
    assert found == cluster_topics([pool, database, driver])


def test_an_overlap_of_three_fifths_is_enough_and_a_chain_makes_no_single_topic() -> None:
    chain = [_centre("a", 1, 2, 3, 4), _centre("b", 2, 3, 4, 5), _centre("c", 3, 4, 5, 6)]
    assert [(one.centre.name, len(one.members)) for one in cluster_topics(chain)] == [
        ("a", 5),
        ("c", 4),
    ]


def test_clusters_of_one_name_are_one_topic_and_similar_names_are_two() -> None:
    one, two = _centre("redis", 1, 2, 3, 4), _centre("redis", 5, 6, 7, 8)
    assert [len(topic.members) for topic in cluster_topics([one, two])] == [8]
    paths = cluster_topics([_centre("src/a.py", 1, 2, 3, 4), _centre("src-a-py", 5, 6, 7, 8)])
    assert len({topic.key for topic in paths}) == 2
    assert cluster_topics([]) == []
    assert [
        one.centre.name for one in cluster_topics([one, *(topic.centre for topic in paths)], 1)
    ] == ["redis"]
