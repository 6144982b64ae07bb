"""Regular expressions for discourse markers (cause, fix, decision, ...), English and Chinese."""

from __future__ import annotations

import re

CAUSE = re.compile(
    r"\b(?:because|root cause|the (?:real |actual )?(?:reason|cause|issue|problem|culprit)\b"
    r"|caused by|causes? an? \w*|due to|turns? out|that'?s why|since (?:the|your|it|we|this|that)\b"
    r"|so that|in order to|which (?:means|is why|causes?))|因为|由于|原因|根因|导致|所以",
    re.I,
)
FIX = re.compile(
    r"\b(?:fix(?:es|ed)?|resolv(?:es?|ed)|the (?:cleanest )?(?:fix|solution) is|work(?:s"
    r"|ed)? around"
    r"|workaround|repaired|corrected|solv(?:es|ed))\b|修复|解决|改成|修正",
    re.I,
)
FAILURE = re.compile(
    r"\b(?:bugs?|fail(?:s|ed|ing|ure)?|errors?|crash(?:es|ed)?|broken|breaks?|exception|panics?"
    r"|regression|race condition|deadlock|leaks?|time[sd]? ?out|does(?:n'?t| not) work"
    r"|silently|missing|wrong(?:ly)?|incorrect(?:ly)?|can(?:'t|not) find|not found|unused)\b"
    r"|报错|失败|异常|崩溃|错误|缺陷|泄漏|死锁",
    re.I,
)
DECISION = re.compile(
    r"\b(?:decid(?:e|ed|ing)|decision|chose|chosen|opt(?:ed)? for|go(?:ing)? with|settled? on"
    r"|agreed|instead of|rather than|switch(?:ed)? (?:to|from)|replac(?:e|ed) .{1,80} (?:with|by)"
    r"|renam(?:e|ed)\b|migrat(?:e|ed) (?:to|from)|chang(?:e|ed) .{1,80} (?:to|from)\b"
    r"|mov(?:e|ed) .{1,80} to\b|revert(?:ed)?|keep(?:ing)?\b|kept|left as[- ]is|no longer"
    r"|let'?s (?:not|use|go|keep|update|do)|we(?:'ll| will| should| need to) (?:use|keep|change"
    r"|not))"
    r"|决定|采用|选用|改用|改为|替换|不再|统一(?:用|使用|为)|迁移到",
    re.I,
)
CONVENTION = re.compile(
    r"\b(?:always|never|must(?:n'?t| not)?\b|conventions?|by convention|make sure|every time"
    r"|whenever|do(?: not|n'?t) (?:ever|commit|use|add|run|touch|edit)|only use|should (?:always"
    r"|never)"
    r"|we follow|standard (?:is|way)|style guide|guidelines?|policy|from now on|going forward)"
    r"|必须|务必|不要|禁止|约定|规范|一律|统一|以后|总是|永远",
    re.I,
)
PREFERENCE = re.compile(
    r"\b(?:i (?:really )?(?:prefer|like|want|hate|dislike|don'?t (?:like|want))|i'?d (?:like"
    r"|rather|prefer)"
    r"|we(?:'d| would) (?:also )?like|we (?:also )?(?:prefer|want|don'?t want)"
    r"|preferred (?:approach|way)"
    r"|is fine, (?:just|but) not|my preference|please (?:use|don'?t|do not|keep|avoid))"
    r"|喜欢|偏好|倾向|希望|不想|宁愿",
    re.I,
)
FINDING = re.compile(
    r"\b(?:already|actually|in fact|intentional(?:ly)?|as expected|no changes? (?:is|are)? ?needed"
    r"|not needed|only (?:one|place)|confirmed|conclusion|verdict)\b|已经|其实|实际上|结论",
    re.I,
)
SUGGESTION = re.compile(
    r"\b(?:consider|could (?:be|benefit|also)|might (?:be|want)|may want|would benefit|suggest)\b"
    r"|建议|可以考虑",
    re.I,
)
# A note that somebody writes is no word to the agent.
REMEMBER = re.compile(
    r"\b(?:(?<!\bi )(?<!\byou )(?<!\bi'd )(?<!\bi do )remember"
    r"|(?<!\bthe )(?<!\ba )(?<!\bthis )(?<!\bmy )(?<!\bour )(?<!\byour )note"
    r"|keep in mind|bear in mind|don'?t forget|important(?:ly)?|fyi|for the record)\b"
    r"(?=[:,]?\s+(?:that|to|note|the|we|this|our|all|never|always)|:)|请?记住|记得|注意|重要",
    re.I,
)
LESSON = re.compile(
    r"\b(?:lessons?|learned|gotcha|pitfall|beware|watch out|caveat|trap|turns out|careful"
    r"|won'?t work|isn'?t valid|is(?:n'?t| not) (?:supported|allowed|possible)|only works?"
    r"|note that"
    r"|important to note|the filter only|by default)\b|教训|经验|坑|注意",
    re.I,
)
TASK = re.compile(
    r"\b(?:todo|to-?do|next steps?|remaining|follow[- ]?ups?|still (?:needs?|to do|missing|open)"
    r"|needs? to be (?:done|added|fixed|updated|removed|verified)|will need to|you(?:'ll"
    r"| will) need to"
    r"|later|separate(?:ly)? (?:concern|pr|issue)|out of scope|pending|before (?:merge|release))\b"
    r"|待办|下一步|尚未|还需要|后续",
    re.I,
)
SPEC = re.compile(
    r"\b(?:requirements?|acceptance criteria|specification|endpoint|schema|payload|must return"
    r"|accepts|returns (?:a|an|the)\b|default(?:s|) (?:is|to)|format is|limit(?:ed)? (?:is|to))\b"
    r"|需求|接口|规格|默认|格式",
    re.I,
)
SKILL = re.compile(
    r"\b(?:to (?:run|build|deploy|test|release|install|reproduce|debug)\b.{0,60}`"
    r"|run `[^`]+` (?:to|before|after)|steps? to|how to|procedure|runbook|checklist)\b|步骤|如何"
    r"|运行",
    re.I,
)
IDENTITY = re.compile(
    r"\b(?:my name is|i am an? \w+|i work (?:at|on|as)|call me)\b|我叫|我是一", re.I
)
REFERENCE = re.compile(
    r"\b(?:see|docs?|documentation|documented|link|dashboard|wiki|runbook)\b.{0,60}https?://"
    r"|^\s*https?://\S+\s*$|参考|参见|链接",
    re.I,
)
COMPLETED_CHANGE = re.compile(
    r"^(?:[^\w`]|`[^`]*`|\w+:)*(?:add(?:s|ed)|chang(?:es|ed)|creat(?:es|ed)|delet(?:es|ed)"
    r"|fix(?:es|ed)"
    r"|implement(?:s|ed)|replac(?:es|ed)|remov(?:es|ed)|renam(?:es|ed)|refactor(?:s|ed)|mov(?:es"
    r"|ed)"
    r"|updat(?:es|ed)|bump(?:s|ed)|kept|migrat(?:es|ed)|extract(?:s|ed)|simplif(?:ies|ied)"
    r"|switch(?:es|ed)|wir(?:es|ed)|revert(?:s|ed)|convert(?:s|ed)|improv(?:es|ed)"
    r"|now (?!th|its|his)\w+s\b)|已",
    re.I,
)

PLEASANTRY = re.compile(
    r"^(?:perfect|yeah|oh man|that (?:makes sense|clarifies|helps)"
    r"|great|excellent|good(?: catch| point| question| call| news)?|nice|awesome|done"
    r"|all done|fixed|sure|ok(?:ay)?|yes|yup|yep|got it|understood|thanks?(?: you)?"
    r"|you'?re (?:absolutely )?"
    r"right|my mistake|sorry|(?:my )?apologies|i apologize|no problem|absolutely|certainly"
    r"|of course|found it"
    r"|makes sense|the user is right|all set|happy to help|i may have misunderstood(?: earlier)?"
    r"|sounds good"
    r"|both pass|everything (?:works|passes)|well done|hello|hi|hey|bye|goodbye|see ya"
    r"|right"
    r"|i see what you mean|i(?:'m not sure| don'?t know)|let me know)\b[^.!?—:]{0,40}"
    r"(?:[.!—](?!\w)|$)|^(?:好的|明白|没问题|谢谢|抱歉|完成了?)[，。！]?$",
    re.I,
)
# What somebody feels about the matter, or recalls of it: courtesies between colleagues.
CHATTER = re.compile(
    r"^[^.!?:]{0,60}(?:\b(?:was|is|are|been|sounds?|feels?)\b|'s\b)"
    r" (?:(?:a|an|the|always|definitely|totally|very|pretty|really|such|huge|real|bit of a) )*"
    r"(?:headache|nightmare|relief|pain(?: point)?|fun|familiar|interesting|surprising|unexpected"
    r"|annoying|classic|(?:solid|good|great|fair|valid|clever|smart|excellent|fun|tricky|tough)"
    r" (?:idea|plan|point|call|question|catch|one))\b[^.!?:]{0,30}[.!]*$"
    r"|^(?:and )?i (?:also |vaguely |definitely )*(?:remember|recall) (?:that|seeing|the|those)\b"
    r"[^.!?:,]{0,60}[.!]*$"
    r"|^thanks\b.*"
    r"|^(?:clean|nice|great|solid|good) (?:implementation|approach|setup|work|design)\W*$"
    r"|^(?:my )?apologies\b.*"
    r"|^(?:this|that) is (?:excellent|great|perfect|helpful)\b[^.!?]{0,40}[.!]*$"
    r"|^[^.!?:;]*\b(?:is|are|makes?) (?:a |an )?(?:really |very |pretty )?"
    r"(?:solid|good|great|excellent|nice|clean|sensible)"
    r" (?:\w+ ){0,2}(?:stack|choice|approach|setup|combination|fit|option|start(?:ing point)?)\b"
    r"(?![^.!?]*\b(?:because|since|as)\b)[^.!?]{0,60}[.!]*$"
    r"|^(?:spot on|you(?:'re| are) (?:totally |absolutely )?right)\b[^.!?]{0,50}[.!]*$"
    r"|^(?:we|i) definitely did\.$",
    re.I,
)
# Words of talk among colleagues; a sentence with one is rarely worth keeping.
COLLOQUIAL = re.compile(
    r"\b(?:pretty|super|a bit|kind of|sort of|yeah|yep|nope|honestly|thank goodness|promising|fun"
    r"|nightmare|headache|chestnut|annoying|hairy|neat|tricky|nasty|subtle|classic|huge win"
    r"|biggest win|good reminder|good info|good example|good move|per se|i like that"
    r"|extra vigilant|nothing like that|ugh|wow"
    r"|surprisingly|essentially|you know|a lot of effort|keep an eye|be mindful"
    r"|really helps?|feels|checking out|i'd say"
    r"|t(?:ies|ied) into (?:that|this))\b",
    re.I,
)
NARRATION = re.compile(
    r"^(?:(?:ok(?:ay)?|now|first|next|then|also|finally|so|but|and|great|perfect|good|alright"
    r"|here)[,!.]?\s++)*"
    r"(?:let me\b|let us\b|i'?ll\b|i will\b|i'?m (?:going|now|about|checking|looking|still)\b"
    r"|i need to\b"
    r"|i(?:'ve| have)? (?:now |just )?(?:see|understand|found|have (?:a |the |now|all|everything)"
    r"|need|can see|want|now|gathered|thoroughly|made (?:the|all)|completed)\b"
    r"|i should\b|i can\b|i could\b|i'?d (?:propose|suggest|be)"
    r"|looking at|starting with|running|checking|reading|searching|here(?:'s| is| are)\b"
    r"|launch|time to|the (?:output|research|exploration"
    r"|results?) (?:now )?(?:shows?"
    r"|reveals?|are|is)|(?:all|both|the)?\s*(?:\d+ )?(?:existing |new |unit |full "
    r"|inverted )*(?:tests?|"
    r"linter|build|test suite|linting)\s+(?:also |now |all |still )*(?:pass(?:es|ed)?|succeed(?:s"
    r"|ed)?|fail when"
    r"|reports? no)|build succe|no (?:issues|errors)\b|a (?:couple|few) (?:of )?(?:things"
    r"|decisions)"
    r"|make these|to answer your|one moment|is there (?:anything|a specific)|which would you"
    r"|what would you"
    r"|to verify|verif(?:y|ied)\b|waiting)"
    r"|^all (?:\w+ ){0,2}tests (?:were )?verified"
    r"|^(?:让我|我来|我将|我会|现在我?|接下来|首先|我先|正在)",
    re.I,
)
OFFER = re.compile(
    r"(?:^|\b)(?:would you like|should i|shall i|do you want|want me to|let me know|if you(?:'d"
    r"| would)"
    r" (?:like|prefer)|feel free|is there anything|anything else|which (?:one|would)|how would you"
    r"|did you mean|ready to|keep me posted|ping me"
    r"|i can (?:draft|open|send|put together))\b|需要我|要不要|是否需要",
    re.I,
)
ASSENT = re.compile(
    r"^\s*(?:yes|yup|yep|yeah|ya|sure|ok(?:ay)?|go(?: ahead| for it)?|proceed|continue|do it"
    r"|please do"
    r"|sounds good|lgtm|looks good|perfect|great|agreed?|correct|right|approved?|ship it"
    r"|implement it"
    r"|好的?|可以|是的?|行|继续|同意|没问题)(?:[\s,!.。，]+(?:please|do it|go ahead|proceed"
    r"|thanks|implement it"
    r"|that'?s good|继续))*[\s!.。]*$",
    re.I,
)
DANGLING_REFERENCE = re.compile(
    r"^(?:it|this|that|these|those|they|both|same|he|she|its|there|such|here|the (?:same|fix"
    r"|change|"
    r"issue|function|code|output|result|above|former|latter|file|flag|comment|refactoring|migration"
    r"|message|documentation|optimization|implementation|tests?))\b|^(?:它|这|那|该|此)",
    re.I,
)
POSITIVE_VERDICT = re.compile(r"^\W*(?:✅|☑|✔|👍|good\b|nice\b|excellent\b|clean\b|clear\b)", re.I)
REFUSAL = re.compile(
    r"^(?:u+m+|er+m*|hm+|uh)?\W*(?:yes|no),? (?:there|it|they|we) (?:is|are|do|does)(?:n'?t)?\b"
    r"|^(?:(?:hmm|well|ah|um+)[,. ]+)?(?:no\b|nope\b|not\b|careful\b|hold on|wait\b|don'?t\b"
    r"|do not\b|stop\b|wrong\b|never\b|rather not|actually[, ]|instead\b"
    r"|we (?:already |have )?(?:tried|shipped)\b|i'?d rather"
    r"|(?:one|two|three|a few|some) corrections?\b)"
    r"|\bthat'?s (?:exactly |precisely )?(?:the wrong|what we can'?t|wrong|backwards?)\b"
    r"|\bdefeats the (?:point|purpose)\b|\bis too (?:broad|narrow|aggressive|much)\b"
    r"|^(?:不|别|等等|不是|不要)",
    re.I,
)
CONFIRMATION = re.compile(
    r"^(?:yes|yep|yeah|yup|right|exactly|correct|perfect|agreed|good|great|ok(?:ay)?|sounds"
    r"|ship it|do it|that'?s (?:the (?:one|rule)|it|right|correct)|all (?:unchanged|right|good)"
    r"|both\b|confirmed|please do|go ahead|deliberately)\b|^(?:好|对|是的|可以|没错|同意)",
    re.I,
)
RECAP = re.compile(
    r"^(?:(?:ok(?:ay)?|right|good|great|so|then|got it|understood|done)[,.:—– -]+)*"
    r"(?:(?:in|to|a|the|my|our|full|short|quick|brief|complete|one|let me|here(?:'s| is)|and)\s+)*"
    r"(?:recap(?:ping)?\b|summary\b(?! of (?:what|the changes|changes))"
    r"|sum(?:ming)?[ -]up\b|summari[sz](?:e|ing)\b|in (?:short|sum)\b"
    r"|tl;?dr\b|bottom line\b|final\b[^.:;]{0,40}(?::|\bthen\b)|settled(?: then)?\b"
    r"|agreed\b[^.:;]{0,30}:|decision:|decided:"
    r"|(?:amended|final|resulting|new|agreed|whole|complete|updated|revised) (?:rule|policy"
    r"|contract|shape|decision|design|behaviou?r|plan|semantics|spec)\b"
    r"|to be explicit\b"
    r"|the (?:definitive |final )?(?:rule|policy|contract|decision)\b.{0,40}\bis\b)"
    r"|^(?:总结|小结|结论|综上|最终|定稿)",
    re.I,
)
OBJECTION = re.compile(
    r"\b(?:too \w+|overkill|slow|heavy|brittle|complex|hard|unsafe|expensive|risky|fragile"
    r"|complain(?:s|ed|ts?)?|ruled? out"
    r"|(?:do|does|did|is|are|wo|ca)n(?:'?t|ot)|not|no|never|lose[sd]?|losing|breaks?|against"
    r"|avoid|hate|drop|forget about)\b|不|太",
    re.I,
)
PROPOSAL = re.compile(
    r"\b(?:i['’]?ll|i will|i['’]d|i would|we (?:could|can|should)|i could|i propose"
    r"|my (?:instinct|suggestion|plan|proposal|inclination|default)|let'?s|how about|what about"
    r"|why not"
    r"|(?:simplest|easiest|simpler|natural|obvious|straightforward) (?:\w+ ){0,2}(?:fix|idea"
    r"|semantics|cleanup|improvement|approach|change|solution|thing)|should i|shall i|want me to"
    r"|do you want|would you like)\b",
    re.I,
)
ACKNOWLEDGEMENT = re.compile(
    r"^(?:got it|understood|ok(?:ay)?|right|noted|makes sense|agreed|clear|settled|excellent"
    r"|perfect|you(?:'re| are) (?:absolutely )?right)\b|^(?:明白|好的)",
    re.I,
)
NORMATIVE = re.compile(
    r"\b(?:must|never|always|only|exactly|should|ha(?:s|ve) to|needs? to|keeps?|stays?|don'?t"
    r"|do not|not?|nothing|instead|unless|except|ignored?|treat|becomes?|ordered|ascending"
    r"|descending|drop(?:s|ped)?|raises?|inclusive|exclusive|at most|at least|whatever|regardless"
    r"|deliberate(?:ly)?|rule|policy|decision|every|all|any|first|last|before|after|strictly)\b"
    r"|必须|不要|不能|只|总是|一律|除非|应该",
    re.I,
)
ASIDE_OPENING = re.compile(
    r"(?:by the way|btw|unrelated(?:ly)?|side note"
    r"|on (?:another|a different|a (?:somewhat )?related) (?:note|matter)"
    r"|(?:unrelated|quick) heads[- ]?up|顺便(?:说|问)?(?:一下|一句)?)\b[\s,.!:;—–-]*",
    re.I,
)
ASIDE = re.compile(
    r"\b(?:heads[- ]?up|unrelated|by the way|btw|side note|flaky|rerun"
    r"|while (?:i'?m|you'?re|we'?re) (?:in|at|here|there)|feature flag|roll ?out|staged"
    r"|separate (?:ticket|issue))\b",
    re.I,
)
# A sentence that begins so leans on the one before it.
LEANING_START = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|both|same|such|deliberately|first|second"
    r"|otherwise|if (?:so|not)|because|which|then|here|there|expected"
    r"|the \w+ of (?:which|it|this|these))\b"
    r"|^(?:它|这|那|因此|所以|否则)",
    re.I,
)
# Who thinks aloud decides nothing.
MUSING = re.compile(
    r"\b(?:i mean|thinking about|(?:my|the) (?:first |initial )?thought"
    r"|i(?:'m| am| was|'ve been)? (?:always |just |also )?(?:thought"
    r"|thinking|wonder(?:ing)?|guess|remember|recall|assum\w+|pretty sure|can see|vaguely)"
    r"|(?:feels?|felt|looks?|seems?|sounds?) (?:like|a bit|as if)"
    r"|it(?:'s| is) (?:like|similar|about)"
    r"|makes? (?:sense|me wonder)|good (?:call|to know)|maybe|perhaps|probably|presumably|might"
    r"|could|would(?:n't)?|should (?:be fine|logically|ideally)|it should be"
    r"|(?:can )?imagine|isn'?t just|implies|that commit|a while (?:ago|back)|as mentioned"
    r"|reminds me|effectively|almost (?:like|as if)|ought to|not ideal"
    r"|looks? (?:solid|fine|ok(?:ay)?|off|weird))\b"
    r"|^(?:i'll|i've|i noticed|i also noticed|like,|for now,|always good)"
    r"|^(?:we|it|they) should(?: have)?\W*$|可能|也许|我觉得",
    re.I,
)
# What somebody saw or did before the talk: it leads to the matter, and settles nothing.
OBSERVATION = re.compile(
    r"^(?>(?:(?:hey|hi|hello|speaking of|also|so|and|but|by the way)\b[^,]{0,60},\s+"
    r"|@?[a-z]\w*+,\s+)*)"
    r"(?:so |and |but )?i(?:'m| am| was|'ve| have| had)?(?: been)?(?: also| just| still| only"
    r"| actually| recently| currently)*"
    r" (?:notic(?:ed|ing)|saw|spotted|seen|remember(?:ed)?|recall(?:ed)?|look(?:ed|ing)"
    r"|digging|dug|review(?:ed|ing)|work(?:ed|ing)|seeing|hit(?:ting)?|wonder(?:ed|ing)"
    r"|suspect(?:ed|ing)|ran|runn?ing|curious|debugg(?:ed|ing)|check(?:ed|ing)|touch(?:ed|ing)"
    r"|refactoring|thinking about|poking|going (?:over|through)|playing|glanc(?:ed|ing)"
    r"|brows(?:ed|ing)|read(?:ing)?|tried|trying)\b"
    r"|^(?:that'?s|it'?s) (?:not )?exactly (?:what|where|the)\b|\bcaught my eye\b|\bi wonder\b"
    r"|^(?:that'?s|it'?s|what) (?:a )?(?:such a )?(?:relief|good to (?:hear|know)|neat|clever)\b",
    re.I,
)
# An agent at work says so where it has found out what is wrong.
DISCOVERY = re.compile(
    r"^\s*(?:(?:ah+|aha|ok(?:ay)?|great|perfect|good|excellent|now|so|interesting)[,!.]?\s+)*"
    r"(?:i (?:can )?(?:now )?(?:see|found|understand)(?: now)?"
    r"(?:\s*[-–—:]|,? (?:the|what'?s|where) (?:\w+ )?(?:issue|problem|bug|error|cause|culprit|wrong"
    r"|happening)\b)"
    r"|found (?:it\b|the (?:issue|problem|bug|cause|culprit|reason))"
    r"|(?:there|here|that)(?:'?s| is) (?:it\b|the (?:issue|problem|bug|cause|culprit|reason))"
    r"|(?:this is )?the (?:issue|problem|bug|error|cause) is\b"
    r"|this is the (?:issue|problem|bug|cause|culprit|reason))|^\s*(?:找到了|问题(?:找到|在于|是))",
    re.I,
)
MISMATCH = re.compile(
    r"\bbut\b.{1,80}(?:n't|n’t|\bnot\b|\bnever\b|\bno longer\b)|但.{0,20}(?:没有|并未|不)", re.I
)
INSPECTION = re.compile(
    r"\b(?:start(?:ing)? by|begin(?:ning)? by|look(?:ing)? (?:at|into)|examin"
    r"|investigat|check|inspect"
    r"|run (?:the|all|a)|verify|confirm|read|search|trace|quickly)",
    re.I,
)
AMENDMENT = re.compile(
    r"\bamend(?:s|ed|ment|ing)?\b|\bsupersed(?:es?|ed|ing)\b|\bchange of plans?\b"
    r"|\bchanged (?:our|my) minds?\b|\brevis(?:es?|ed|ion|iting)\b|\binstead of what\b"
    r"|\b(?:replac|overrid|overrul|drop|revers|undo)\w* (?:the|our|last|that) (?:\w+ ){0,2}"
    r"(?:decision|rule|policy|plan|convention|choice)\b"
    r"|\b(?:earlier|previous|old|original|last (?:week|month|year)'?s?)"
    r" (?:decision|rule|policy|plan|choice)\b"
    r"|\bwe(?:'re| are) (?:now )?(?:switching|moving|going back)\b"
    r"|修正|取代|改变计划",
    re.I,
)
