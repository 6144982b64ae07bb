"""Prompts that no memory of the question sets answers."""

from __future__ import annotations


def _split(text: str) -> list[str]:
    return [prompt for line in text.splitlines() for prompt in line.split("|")]


GENERAL_PROMPTS = _split("""\
How do I bake sourdough bread?|What is the capital of France?|write a haiku about autumn
fix the typo in README.md|what time is it in Tokyo?|Summarise this email for me
who won the world cup in 2018|How many calories are in an avocado?|explain monads to me
rename the variable x to count|what does git rebase -i do|write a regex for phone numbers
convert this csv to json|add a license header to every file|how do I exit vim
what's the weather like|sort this list alphabetically|translate hello to Spanish
run the tests|commit and push|make the button blue|why is the sky blue
what is a binary search tree|implement quicksort in rust|how to center a div
write unit tests for this function|upgrade to the latest node version|add dark mode
what's 17 * 23|generate a UUID|explain this stack trace|how does TCP slow start work
draw an ascii cat|difference between let and const|format this file
is this code thread safe?|bump the version to 2.1|what are good names for a dog
add a loading spinner to the page|help me write a cover letter""")
CODING_PROMPTS = _split("""\
Why does the Celery worker time out when it renders invoice PDFs?
the Kotlin app crashes on rotation in the login fragment
How do we rotate the Terraform state bucket's encryption key?
Our Rails migration locks the subscriptions table for ten minutes, what did we decide about it?
add a Prometheus histogram to the kafka consumer lag exporter
Which Ansible role installs the nginx ingress certificates?
Unity shader flickers on Metal when shadows are enabled
the ESP32 firmware loses its Wi-Fi credentials after a brownout reset
Why did we choose Elixir over Go for the chat gateway?
Fix the flaky Cypress test of the seat map in the airline booking flow
What is our retry policy for the SAP order interface?
the iOS widget shows yesterday's step count until it is tapped
Where do we configure the Airflow DAG that loads the Salesforce accounts?
Rewrite the COBOL batch job's date handling for leap years
our Godot tilemap collision is off by half a tile
Which feature store does the fraud model read from?
The Dockerfile of the R Shiny dashboard takes forty minutes to build
Why is the Flink checkpoint growing without bound?
how should errors be wrapped in the Rust parser crate
the Helm chart of the billing service ignores podAntiAffinity
What does the CAN bus decoder do with frames from the second inverter?
Investigate the memory leak in the Electron tray icon
Is the ledger's GraphQL mutation for refunds idempotent?
The Swift package for barcode scanning rejects EAN-8 codes
How do we version the protobuf messages of the drone telemetry?
the Hugo theme renders footnotes twice in the RSS feed
What was the root cause of the Cassandra tombstone storm in March?
Why are the Snowflake credits doubling each weekend?
the MATLAB filter coefficients differ from the fixed-point DSP code
which Slack channel gets the PagerDuty escalations of the payments squad
Port the OpenGL particle system to Vulkan compute shaders
The Jenkins pipeline of the set-top box image fails at the signing step
Do we shard the Mongo collection of chat messages by room or by day?
remove the deprecated SOAP endpoint of the insurance quotes
How are translations of the Android strings pulled from Weblate?
The Arduino soil sensor reads 1023 after the second watering
our LaTeX build drops the bibliography on Windows runners
What compression does the satellite image tiler use for band eight?
Make the Blender add-on remember its export folder
The Perl log rotator deletes files that syslog still writes
which vendor supplies the GPS chip of the second revision board
Why does the Solidity vesting contract revert in the last block of a period?
The Zig allocator test leaks on arm64|Where is the WebRTC signalling server deployed?
Speed up the pandas merge of the energy meter readings
What is the naming scheme of our BigQuery datasets?
The Qt table view scrolls back to the top on each refresh
how do we mock the DICOM server in the radiology viewer's tests
Let the Discord bot mute users for an hour
The Lambda that resizes avatars runs out of memory on HEIC photos
Did we agree on tabs or spaces in the Verilog sources?
Handle back pressure in the MQTT bridge of the greenhouse
The Wear OS tile does not update after midnight
Why is the Bazel remote cache missed on every macOS build?
Change the cron of the payroll export to the last working day
The Minecraft plugin duplicates items on chunk unload|What is the SLA of the address geocoder?
The Vue form of the clinic loses its state on language switch
How are feature branches of the data warehouse cleaned up?""")
"""Made up, of projects that none of the sets is about."""
CHINESE_PROMPTS = _split("""\
怎么做红烧肉？|法国的首都是哪里？|写一首关于秋天的诗|把 README.md 里的错别字改掉
现在东京几点？|帮我总结这封邮件|天空为什么是蓝色的？|一个牛油果有多少卡路里？
把变量 x 改名为 count|什么是二叉搜索树？|用 Rust 写一个快速排序|怎么退出 vim？
今天天气怎么样？|把你好翻译成西班牙语|运行测试|提交并推送|把按钮改成蓝色
解释一下这段堆栈信息|给页面加一个加载动画|帮我写一封求职信|推荐几部好看的电影
生成一个随机密码|这段代码线程安全吗？|给小狗起个名字""")
