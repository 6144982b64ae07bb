"""Regular expressions for the kind and salience of a single sentence, English and Chinese."""

from __future__ import annotations

import re

# What a user states, by kind. Narrower than the words above: each names its kind by itself.
HABIT = re.compile(
    r"\b(?:i|we)(?:'ve)? (?:really |always |never |usually |strongly |much )*(?:prefer|like|love"
    r"|hate"
    r"|dislike|enjoy)\b|\bi (?:always|never|usually)\b|\bi (?:really )?(?:don'?t|do not) (?:like"
    r"|want)"
    r"|\bi'?d (?:rather|prefer)\b|\bmy (?:preference|preferred|style)\b|\bhow i (?:like|work)\b"
    r"|\bi'?m (?:not )?a fan\b|我(?:更|比较)?(?:喜欢|偏好|倾向|习惯|讨厌)|我(?:总是|从不|一般)"
    r"|偏好",
    re.I,
)
RULE = re.compile(
    r"(?:^|[,;:—–-] |\b(?:and|but|please|we|you|should|must|i|to|that|also) )(?:always|never)\b"
    r"|\bmust(?:n'?t| not)?\b(?! have\b)"
    r"|\b(?:by (?:our |the )?|our |the |a )convention\b|\bevery (?:time|new"
    r"|pr"
    r"|commit|change|endpoint|function|file|query|test|migration|single)\b|\bwhenever\b"
    r"|\b(?:from now on|going forward|in (?:the )?future|as a rule|no exceptions)\b"
    r"|\b(?:do not|don'?t) ever\b|^lessons?(?: learned)?:"
    r"|\b(?:all|any|each|every) \w+(?: \w+)? (?:should|must|needs?|has to"
    r"|have to|goes?|go)\b|\bwe follow\b|\bour (?:policy|rule|standards?)\b"
    r"|^(?:[\w`*.-]+ ){1,4}(?:go|goes|live|lives|belongs?) (?:in|into|next to|under|beside)\b"
    r"|\b(?:is|are) (?:forbidden|mandatory|not allowed)\b|\bonly (?:ever )?(?:use|allow)\b"
    r"|必须|务必|不要|禁止|约定|规范|一律|统一|以后|永远|所有.{1,20}都",
    re.I,
)
CONDUCT_REQUEST = re.compile(
    r"\bplease (?:never|always|don'?t|do not|avoid|keep|stop|only)\b|^(?:please )?(?:don'?t|do not"
    r"|stop"
    r"|avoid)\b|\bkeep (?:your |the |all )?(?:responses?|answers?|it|them|messages?|commits?) \w+"
    r"|\bno (?:fluff|preamble|emojis?|comments|need to explain)\b|请(?:不要|别|始终|总是|保持)"
    r"|别再",
    re.I,
)
CHOSEN = re.compile(
    r"\b(?:go(?:ing)? with|go for|take|choose|pick|prefer|opt for|let'?s (?:do|use|try))"
    r" ((?:\w+[ -]?){1,5})|(?:就用|选)(\w{1,12})",
    re.I,
)
DEFERRED = re.compile(
    r"\b(?:to-?do:?|later(?: on)?,? we|we(?:'ll| will) (?:need to|have to|get to|do) .{1,60}\blater"
    r"|for later|(?<!was the )(?<!were the )next (?:up|step)"
    r"|\b(?:we|i|let'?s)\b[^.]{0,60}\bnext (?:week|sprint)"
    r"|not (?:now|yet),? but|still (?:needs?|have) to"
    r"|follow[- ]?up)\b|待办|稍后|下一步|之后再|以后再",
    re.I,
)
ENSURE = re.compile(r"\b(?:make sure|ensure|be sure)\b(?! you)|确保|保证", re.I)
CHOICE = re.compile(
    r"\b(?:let'?s (?:not |also |just |instead )?(?:use|go with|keep|switch|stick|move|drop|call"
    r"|rename|leave|remove|store|have|update|change|turn)|decided|decision|instead of"
    r"|go(?:ing)? (?:with|for)\b"
    r"|rather than|instead\b|switch(?:ing|ed)? (?:to|from|over)|mov(?:e|ing) (?:away )?(?:to|from)"
    r"|migrat(?:e|ing) (?:to|from)|replac(?:e|ing) .{1,60} (?:with|by)|we(?:'re| are) (?:using"
    r"|moving"
    r"|going|dropping|switching)|we(?:'ll| will) (?:use|go|keep|drop|stick)|i(?:'d)? (?:want"
    r"|like) (?:to"
    r" )?(?:use|switch|go|move|keep)|use \S+(?: \S+)? (?:for|not|as|over|everywhere)"
    r"|not \S+, (?:but"
    r" )?\S+|no longer|stick(?:ing)? with|agreed|fine as is|is fine,? (?:just|but)|should be called"
    r"|i want\b.{3,}|we want\b.{3,})|决定|采用|选用|改用|改为|改成|替换|不再|迁移到|就用"
    r"|用.{1,20}(?:代替|取代)",
    re.I,
)
# Who says so chooses, and does not only compare.
CHOOSING = re.compile(
    r"\b(?:we(?:'re|'ll| will| are| don'?t| want| need| use| accept| chose| decided)?\b"
    r"|let'?s|i(?:'d)? (?:want|like|prefer)|(?:go|stick|stay) with|decided|decision|agreed)"
    r"|^(?:(?:so|then|and|please|ok(?:ay)?|yes|no),? )*(?:use|keep|drop|move|switch|rename|replace"
    r"|leave|call|make|put|store|ship)\b|fine as is|no longer|决定|采用|选用|改|用|不再|统一",
    re.I,
)
REQUIREMENT = re.compile(
    r"(?<!you )\b(?:should(?:n'?t| not)?|needs? to (?:be|have|work|support|keep)|(?:has"
    r"|have) to (?:be|have"
    r"|work)|(?:is|are) required|requires?|only if|at most|at least|no more than|expires?"
    r"|defaults? (?:to|is))\b|^(?:the )?\w+ (?:have|has|need) [^.]+,"
    r"|需要|应该|应当|包含|支持|返回|默认|至少|最多|格式",
    re.I,
)
PROJECT_STATE = re.compile(
    r"\b(?:it'?s an?\b|is an? \w+ (?:for|that|of|with|using|built|in)\b|we(?:'re| are) (?:on"
    r"|running|at"
    r"|building|a)\b|we (?:use|run|have|deploy|host|store|keep|publish)\b|(?:runs?|built|written"
    r"|deployed|hosted|based|lives?|located) (?:on|in|with|at|under)\b|the (?:repo|repository"
    r"|project"
    r"|service|app|stack|database|team|endpoint|code) (?:is|has|uses|lives)\b|starting a\b"
    r"|(?:is|are) (?:now )?(?:done|finished|live|deployed)\b|used to (?:be|live)\b|working on\b)"
    r"|项目(?:是|使用|用)|我们(?:使用|用的|用|在)|部署在|运行在|基于",
    re.I,
)
QUESTION = re.compile(
    r"^(?:(?:so|and|but|ok(?:ay)?|hey|hm+|um+),? )*(?:what|why|how|which|who|can you"
    r"|(?:where|when) (?:exactly|is|are|was|were|do|does|did|will|would|can|could|should|has|have)"
    r"|could you"
    r"|would you|do we|does|did|is (?:it|this|that|there)|are (?:there|we|you|they)|should we"
    r"|have you"
    r"|any idea|remind me|tell me|explain|show me|walk me)\b|^(?:为什么|怎么|如何|什么|哪|能否|是否"
    r"|请问)",
    re.I,
)

# What an agent reports.
ROOT_CAUSE = re.compile(
    r"\broot cause\b|\bthe (?:real |actual |underlying )?(?:bug|culprit|cause|problem|issue)"
    r"(?: (?:is|was|here)\b|:| —| -)|\bthat'?s why\b|根因|根本原因|问题(?:在于|是)",
    re.I,
)
# "Root cause: …", "The fix: …" by whoever says it.
CAUSE_LABEL = re.compile(
    r"^(?:the )?(?:actual |real |final )?(?:root )?(?:cause|reason|culprit|fix|solution|workaround)"
    r"(?: (?:was|is)\b|\s*[:：])|^(?:根因|原因|修复|解决(?:方案|办法)?)\s*(?:[:：]|是)",
    re.I,
)
FIX_REPORT = re.compile(
    r"\b(?:fix(?:es|ed)|resolv(?:es|ed)|the (?:\w+ )?fix)\b|^(?:the )?(?:fix|solution)\b|修复"
    r"|已解决",
    re.I,
)
PITFALL = re.compile(
    r"\b(?:lessons?|learned|gotcha|pitfall|beware|watch out|caveat|trap|turns out|won'?t work"
    r"|(?:is|are)(?:n'?t| not) (?:valid|supported|allowed|possible)|only works?|note that"
    r"|important to note"
    r"|(?:thing|one) to (?:watch|know|note|remember)|worth (?:knowing|noting)|keep in mind"
    r"|whenever you"
    r"|for future reference|must (?:not )?be|never \w+ .{3,}|only looks? (?:in|for|at)"
    r"|cannot \w+|can'?t \w+ .{3,}|doesn'?t (?:support|allow|work|include|apply))\b|教训|经验|坑"
    r"|注意|切记",
    re.I,
)
CHANGE_REPORT = re.compile(
    r"\b(?:instead of|rather than|replac(?:es|ed|ing)|switch(?:es|ed|ing) (?:to|from|over)"
    r"|renam(?:es|ed)"
    r"|mov(?:es|ed) .{1,80} (?:to|into|from)\b|migrat(?:es|ed|ing) (?:to|from|is)|chang(?:es"
    r"|ed) .{1,80}"
    r" (?:to|from)\b|decided|chose|went with|revert(?:s|ed)|remov(?:es|ed)|deprecat(?:es|ed)"
    r"|kept .{1,60}"
    r" (?:because|since|as|so)|no longer|left .{1,40} as[- ]is|now (?:uses?|requires?|returns?"
    r"|runs?"
    r"|defaults?|lives?|goes|stores?|only|points?)|(?:don'?t|do not|won'?t) use|opted|us(?:e"
    r"|ing) .{1,60}"
    r" (?:because|since|so that|to avoid)\b)|^(?:use|using) |决定|改为|改用|替换|不再|迁移|移除",
    re.I,
)
BEHAVIOUR = re.compile(
    r"\b(?:returns?|accepts?|expir(?:es?|y)|stored in|stores?|default(?:s)? (?:to|is|of)|schema"
    r"|endpoint"
    r"|table|columns?|fields?|index(?:es)? on|format|limit(?:ed)?|max(?:imum)?|min(?:imum)?"
    r"|signed with"
    r"|env(?:ironment)? var|validat(?:es|ed)|triggers?|cach(?:es|ed)|each time|per (?:user|minute"
    r"|second"
    r"|request|hour|day|ip|session)|uses|calls|sends|reads?|writes?|runs? (?:on|in|as|every|before"
    r"|after)"
    r"|consists? of|is (?:called|handled|computed|stored|keyed|set|signed|set up) (?:by|in|from|as"
    r"|with|to)"
    r"|requires?|depends on|configured|ttl|key is|works (?:by|as))\b"
    r"|(?:GET|POST|PUT|PATCH|DELETE) /|返回|默认|存储|字段|接口|格式|依赖|有效期|过期|限制|最大",
    re.I,
)
HOW_TO = re.compile(
    r"\b(?:run|execute|via|by running|use):? `(?!git (?:diff|log"
    r"|status))(?-i:[a-z])[\w./-]* [^`]+`"
    r"|^(?:to )?(?:run|start|stop|build|deploy|test|release|install|lint|format|migrate|init"
    r"|set ?up"
    r"|seed)\b[^`]{0,50}:? `(?-i:[a-z])[\w./-]* [^`]+`|^(?:\w+ ){0,3}(?:init|setup|commands?"
    r"|new \(\w+\)):"
    r" `(?-i:[a-z])[\w./-]* [^`]+`|(?:运行|执行|启动|部署).{0,20}`(?-i:[a-z])[\w./-]* [^`]+`",
    re.I,
)
PENDING_WORK = re.compile(
    r"\b(?:to-?dos?:|next steps?|remaining (?:work|tasks?|items?|steps?|issues?)|follow[- ]?ups?"
    r"|still (?:needs?|to do|missing|open)"
    r"|needs? to be (?:done|added|fixed|updated|removed)|you(?:'ll| will) (?:still )?need to|(?:is"
    r"|are)"
    r" (?:a )?separate (?:concern|pr|issue)|out of scope|(?:is|are|still) pending|pending:"
    r"|before (?:merge|merging|release|launch)"
    r"|not (?:yet )?(?:implemented|started)|not done yet)\b|待办|下一步|尚未|还需要|后续",
    re.I,
)
VERIFICATION_REPORT = re.compile(
    r"\b(?:tests are|(?:no )?existing tests?|unit tests?|tests? (?:for|that|in|needs?)\b"
    r"|my (?:original|earlier|previous)|apologi\w+|(?:completed|installed) (?:cleanly|successfully)"
    r"|is gone"
    r"|checks? out|(?:all|the|both|existing|new|unit|integration"
    r"|\d+) (?:\w+ ){0,2}(?:tests?|checks?|cases?)"
    r" (?:now |all |still )?(?:pass|fail|succeed|were|are|verify|cover|document)|tests? pass(?:es"
    r"|ed|ing)?"
    r"|lint(?:er|ing)? (?:is |now )?(?:clean|pass)|build (?:succeeds|passes|is (?:clean|green))"
    r"|compiles"
    r"|no (?:lint|errors|issues|changes needed)|verified|verification|non-tautological|tautolog\w+"
    r"|test (?:cases?|verification|data|file)|scenarios?|coverage|as expected|(?:assertions?"
    r"|assert)\b"
    r"|(?:is|are|has been) (?:complete|in place|ready|good)|looks? good|well[- ](?:written"
    r"|structured"
    r"|tested|done|designed)|good (?:use|practice|naming|test|coverage)"
    r"|follows (?:the )?(?:existing|same)"
    r"|ready to (?:merge|commit|go)|now (?:includes|lists|covers|matches))\b"
    r"|测试(?:全部|都|均)?(?:已)?通过|构建成功|没有问题",
    re.I,
)
# What was tried and given up, with the reason.
GIVEN_UP = re.compile(
    r"\b(?:i|we) (?:first |also |had )?(?:tried|considered|suspected|thought of)\b.{1,80}\bbut\b"
    r"|试过.{1,40}但",
    re.I,
)
HEDGE = re.compile(
    r"\b(?:might|maybe|possibly|perhaps|i think|seems?|probably|presumably|likely)\b|可能|也许",
    re.I,
)
NITPICK = re.compile(
    r"\b(?:minor|nit(?:pick)?|optional|nice to have|cosmetic|typo|grammar|readab|slightly"
    r"|acceptable"
    r"|same comment|very long list|for consistency|consistent with)\b|小问题",
    re.I,
)
REVIEW_COMMENT = re.compile(
    r"^lines? \d+|\b(?:strengths?|observations?|suggestions?|line[- ]by[- ]line"
    r"|review of"
    r"|verified behavior|pros|cons|positives?|should fix|must fix|recommend(?:ed|ation)s?|reviewer"
    r"|missing (?:-|comment|test|doc)|hard-?coded|unusual|magic (?:numbers?|strings?)|duplication"
    r"|could (?:simply )?be|redundant|dry opportunity|improvements?|most important|code quality"
    r"|test plan|assessment"
    r"|potential (?:issues?|improvements?|concerns?))\b",
    re.I,
)
QUOTED_REVIEW = re.compile(
    r"\b(?:(?:review|reviewer|copilot|pr|this|following) (?:'?s )?comments?|what say you"
    r"|your thoughts"
    r"|comment from|from (?:a|the) review(?:er)?|address (?:-|\d|this))|(?:^|\s)let'?s (?:address"
    r"|look at)\b"
    r"|\bimplement the following plan\b",
    re.I,
)
USER_PROBLEM = re.compile(
    r"\bwe(?:'re| are) (?:\w+ )?(?:hitting|seeing|getting|missing|losing|having)\b|\bi(?:'m"
    r"| am)? (?:get"
    r"(?:ting)?|see(?:ing)?|hit(?:ting)?|had|have) .{0,60}(?:error|fail|crash|wrong|duplicate"
    r"|timeout|leak"
    r"|exception|problem|issue)|\b(?:is|are|keeps?|started) (?:\w+ )?(?:failing|crashing|broken"
    r"|wrong"
    r"|missing|slow|leaking|not working|flaky|stuck|hanging|timing out|showing .{0,30}wrong"
    r"|taking \d)"
    r"|\b(?:fails?|crashes|breaks|hangs|leaks|does(?:n'?t| not) work|can(?:'t|not) find)\b"
    r"|\bthrow(?:s|ing)\b.{0,40}error|报错|失败|异常|崩溃|泄漏|死锁|耗尽|超时了",
    re.I,
)
DIRECTIVE = re.compile(
    r"^(?:take a look|look (?:at|into)|see|read|check|run|try|review|verify|show|give|write|tell"
    r"|find|go"
    r"|do|put|feel free|compare|i (?:already )?(?:had|have|tested|tried|ran|did|guess)|here'?s"
    r"|attached|got this|you )\b|^(?:看|检查|运行|试)",
    re.I,
)
SEVERE = re.compile(
    r"\b(?:critical|severe|data loss|security|should not be committed|compil(?:e|ation) error|race"
    r"|deadlock|regression|silently|blocker)\b|严重|关键",
    re.I,
)
# A place in a file, or in a list that is not told with it.
LINE_REFERENCE = re.compile(
    r"\blines? \d+(?:\s?[-–]\s?\d+)?\b|\(new\)|\(modified\)"
    r"|\bthe (?:last|first|other|remaining) (?:two|three|four) (?:cases|items|points|ones|tests)\b",
    re.I,
)
LOCATION_POINTER = re.compile(
    r"^(?:file|location|path|lines?)\b:? ?[`/\w\d]|^(?:[\w`()]++ ){0,4}[`()]*+lines? \d+-\d+\)?$"
    r"|\[request interrupted|^\[",
    re.I,
)
DECISION_HEADING = re.compile(
    r"\b(?:decisions?|decided|chosen|approach|why (?:i|we)'?d)\b|决定", re.I
)
EXPLORATION = re.compile(
    r"(?:^|: )(?:research|explore|find|search|look|understand|read|locate|specifically)\b", re.I
)
ADVICE = re.compile(
    r"\beither\b|would (?:need|require|mean)|we'?d need|appears? (?:redundant|unused)"
    r"|\bnot needed\b"
    r"|should be (?:verified|checked)|\bverdict\b|if (?:this|it) is intentional|(?:you're"
    r"|you are) correct",
    re.I,
)
TEST_NAME = re.compile(r"\bTest[A-Z]\w+|_test\.\w+|\btest_\w+")

# Work that is over by the next day: what was pushed, which tests ran, the state of a branch.
TRANSIENT = re.compile(
    r"\b(?:(?:has been|have been|was|were|is|are|i(?:'ve)?|and) (?:now )?(?:committed|pushed|merged"
    r"|rebased|staged))\b|^(?:committed|pushed|merged|rebased|staged)\b"
    r"|\b(?:created|made|pushed|as|is|with) (?:(?:a|the|new) )*commit `?[0-9a-f]{7,40}\b"
    r"|\byour branch is\b|\bworking tree\b|\bnothing to commit\b|\bup to date with\b"
    r"|\b(?:pr|pull request) (?:#\d+ )?(?:is |was |has been )?(?:created|opened|updated|ready)\b"
    r"|\b(?:tests?|checks?|linter|lint(?:ing)?|build|suite)\b(?: \w+){0,3} (?:now |all |still )*"
    r"(?:pass(?:es|ed)?|succe(?:eds?|eded)|(?:is|are) (?:green|clean)|only shows?|reports? no)\b"
    r"|\b(?:created|wrote|updated|revised) the (?:\w+ )?plan\b"
    r"|\b(?:not related to|unrelated to|before) my changes?\b|\bpre-existing (?:\w+ )?(?:warnings?"
    r"|fail(?:ures?|ing)|errors?|issues?)\b|\bprocess completed with\b"
    r"|\b(?:not|n'?t) (?:yet )?(?:installed|running)\b"
    r"|\btautolog|\btest verification\b"
    r"|^(?:you can (?:now )?)?(?:push|re-?run|retry|restart)\b|\bshould work now\b"
    r"|^(?:that|this|it) should (?:now )?(?:eliminate|fix|resolve|solve|work|do|help)\b"
    r"|^ready when you\b|^\w{3,20}ing\b[^.…]{0,40}(?:\.\.\.|…)$"
    r"|已(?:提交|推送|合并)",
    re.I,
)
# An order for the work at hand, not for the next time.
ONE_OFF_ORDER = re.compile(
    r"^(?:(?:then|now|first|next|also|please|and|ok(?:ay)?|yes|go ahead and|let'?s|you can)[,.]? )*"
    r"(?:(?:commit|push|merge|rebase|stage|stash|discuss|proceed|continue|implement|commence"
    r"|start|begin|finish|retry|rerun|revisit|double[- ]check|summari[sz]e|explain|describe|list"
    r"|draft|open|close|add|create|write|update|generate|bump|tag|ship|apply|address|fix|look"
    r"|clean ?up|split|squash|undo|paste|copy|ask|wait|hold|investigate|explore|research|propose"
    r"|suggest|review|analy[sz]e)\b|make (?:a|the) (?:plan|list|commit|pr|branch)\b)"
    r"|^(?:提交|推送|合并|继续|讨论)",
    re.I,
)
GENERAL = re.compile(
    r"\b(?:always|never|every|each|all|any|whenever|from now on|going forward|in (?:the )?future"
    r"|as a rule|by default|must|only|at (?:most|least)|unless|except|because|so that|instead of"
    r"|rather than)\b|总是|永远|以后|每次|必须|一律|所有",
    re.I,
)
EVERY_TIME = re.compile(
    r"\b(?:always|never|every|each|whenever|from now on|going forward|in (?:the )?future)\b"
    r"|总是|永远|以后|每次",
    re.I,
)
FOR_THIS_TIME = re.compile(
    r"\b(?:yet|for now|right now|this time|just now|at the moment|until (?:i|we|you)"
    r"|before (?:you|i)|these"
    r"|th(?:is|e (?:two|three|other)) (?:changes?|commits?|plan|pr|branch|session))\b"
    r"|暂时|先不要",
    re.I,
)
OPTIONS = re.compile(
    r"^(?:(?:the|your|our|some|a few|several|two|three|four|possible|other|here are) ){0,3}"
    r"(?:options?|alternatives?|choices?|possibilities|(?:possible|potential) \w+)\b"
    r"|\boption (?:\d|[a-c])\b|^(?:方案|选项)",
    re.I,
)
# A list that says what is to be done, or what somebody might do.
PLANNED = re.compile(
    r"\b(?:involves?|plan(?:ned)?|would|will (?:need|be)|to understand|next steps?|checklist"
    r"|proposed|proposal|improvements?|recommend\w*|suggest\w*|consider(?:ations?)?|concerns?"
    r"|remaining|previous (?:fixes|changes)|checks? out|reviewer|opinion|gaps?"
    r"|nice to have|observations?|opportunit(?:y|ies))\b",
    re.I,
)
REVIEW_REQUEST = re.compile(
    r"^\s*(?:<command-(?:name|message)>)?/?[\w:-]*review\b|<command-name>/[\w:-]*review\b"
    r"|\bcurrent pull request status\b"
    r"|\b(?:review|critique|audit) (?:(?:the|this|my|our|these|all) )*(?:\w+ )?(?:prs?"
    r"|pull requests?|diff|changes?|branch|commits?|code)\b",
    re.I,
)
REVIEW_REPORT = re.compile(r"^#{1,4}\s[^\n]{0,60}\breview\b", re.I | re.M)
GUESS = re.compile(
    r"^(?:i (?:think|suspect|guess|assume|believe|bet)|my guess|maybe|perhaps|probably|possibly"
    r"|it(?:'s| is| must| might| could)? (?:probably|likely|must be|might be|could be))\b"
    r"|\b(?:i suspect|i bet|my guess is|my hunch)\b|^(?:可能|也许|我猜|我怀疑)",
    re.I,
)
# What only who took part in the talk understands, or what is on one machine.
ADDRESSED = re.compile(
    r"\b(?:the|this|that) reviewer\b|\byour (?:[\w-]+ ){0,2}(?:examples?|comments?|feedback"
    r"|suggestions?|requests?|questions?|concerns?|measurements?)\b|(?:^|[\s`(])/(?:Users|home)/\w",
    re.I,
)
LINE_PLACE = re.compile(
    r"^(?:at|on|in) lines? \d[\d–-]*,\s*|^lines? \d[\d–-]*+\s*[:：—–-]+\s+"
    r"|(?<!\s)\s*\b(?:at|on|in) lines? \d[\d–-]*(?=[\s.;,]|$)"
    r"|(?<!\s)\s*\((?:at |on |around |new )?lines? \d[\d\s,–-]*(?:and \d[\d–-]*)?\)"
    r"|(?<=`)\s+\((?:new|modified)\)"
    r"|(?<=\w)(?P<extension>\.(?:c|cc|cpp|cs|go|h|java|jsx?|json|kt|md|php|py|rb|rs|sh|sql|swift"
    r"|toml|tsx?|ya?ml)):\d+(?:[-–]\d+)?",
    re.I,
)
DONE_HEADING = re.compile(
    r"^(?:(?:new |key |main |other )*(?:files? )?(?:created|modified|changed|added|removed|deleted"
    r"|updated|renamed|moved|changes?)\b|what changed\b|done\b)",
    re.I,
)
