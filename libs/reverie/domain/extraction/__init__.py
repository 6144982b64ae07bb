"""Rules that turn a conversation into candidate memories, without a language model.

The pipeline, by the module that holds each step:

1. Segment (`conversation.topic_segmentation`, `conversation.exchanges`): a session is cut into
   topics, and a topic into exchanges: a message of the user with the replies to it.
2. Classify (`records.user_statements`, `records.agent_statements`): the sentences that may be kept
   get a kind, a score for their salience, and whether they decide something. The cues are data:
   `wording/lexicon`. `wording.salience` adds them up.
3. Group (`records.subtopics`): the exchanges on one thing to settle become one record.
4. Select (`records.record_builder`, `records.statement_selection`): what a later statement
   supersedes is dropped; of the rest, the weightiest that add something and fit are taken.
   Alternatives that the user rejected are kept with the reason (`records.rejected_alternatives`).
   Talk that settles nothing is kept as questions with answers (`records.answer_records`).
5. Compose (`records.decision_records`, `records.record_text`, `records.redundancy`): the parts
   become one text without redundancy, that can be read alone: no anaphora without its antecedent.
6. Verify (`record_validation`, `content_checks`): what a model wrote is checked against its turns.
7. Supersede (`amendments`, `user_corrections`): a later record or correction replaces an older one.

`rule_extractor` runs the steps over a session. `own_memories`, `commit_records` and `learned_facts`
read other sources.
"""
