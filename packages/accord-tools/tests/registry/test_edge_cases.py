"""Every edge case that clients of the registry have met, with the tests that cover it, some of which are here.

The first part of the table is what a client must survive, the second what has hurt users of other clients.
"""

from __future__ import annotations

import shutil
import sys

import pytest

from accord_tools.registry import RegistryError, installed_agents
from accord_tools.registry.package_installers import program_name
from tests.named_tests import named
from tests.registry.conftest import DEMO
from tests.registry.local_registry import Answer

EDGE_CASES = {
    "an index of the future, with unknown keys": [
        "test_agent_index::test_a_list_of_the_future_is_read_as_far_as_it_is_understood",
    ],
    "an unknown kind of distribution": [
        "test_agent_index::test_a_list_of_the_future_is_read_as_far_as_it_is_understood",
        "test_installable_agents::test_search_finds_by_words_kind_platform_and_licence",
    ],
    "an entry without a kind for this platform is listed, with the reason": [
        "test_installable_agents::test_search_finds_by_words_kind_platform_and_licence",
        "test_install_agent::test_an_entry_that_fits_no_platform_here_says_what_it_has",
    ],
    "another version in the package than in the entry": [
        "test_entry::test_a_published_entry_means_its_command_on_each_system",
        "test_entry::test_the_strict_check_finds_the_mistakes_that_were_published",
    ],
    "versions that are not semantic": [
        "test_entry::test_versions_that_are_not_semantic_are_compared_as_numbers",
        "test_install_agent::test_a_strange_version_and_a_reserved_id_get_safe_folders",
    ],
    "a download without an ending": ["test_install_agent::test_a_download_without_an_ending_is_the_program_itself"],
    "a program one folder deeper": ["test_install_agent::test_a_program_one_folder_deeper_is_found"],
    ".tbz2 and the other endings": [
        "test_install_agent::test_an_archive_is_installed_and_its_program_starts",
        "test_archives::test_each_form_of_archive_is_unpacked",
    ],
    "paths of Windows": [
        "test_entry::test_a_published_entry_means_its_command_on_each_system",
        "test_entry::test_a_path_that_leaves_the_archive_on_windows_is_refused",
    ],
    "an id that vanishes from the list": [
        "test_names::test_an_installed_agent_stays_usable_when_the_registry_lists_it_no_more_or_is_gone",
    ],
    "the registry cannot be reached": [
        "test_agent_index::test_a_list_that_cannot_be_fetched_is_taken_from_the_cache_and_its_age_is_said",
        "test_names::test_an_installed_agent_stays_usable_when_the_registry_lists_it_no_more_or_is_gone",
    ],
    "a half-written cache": ["test_agent_index::test_a_half_written_cache_counts_as_none"],
    "two installations at once": ["test_install_agent::test_two_installations_at_once_install_it_once"],
    "an interrupted installation": ["test_install_agent::test_what_an_interrupted_installation_left_is_removed"],
    "a full disk": ["test_install_agent::test_a_full_disk_is_said_and_nothing_stays"],
    "variables of proxies": ["test_agent_index::test_proxies_of_the_environment_are_used"],
    "a wrong checksum": [
        "test_install_agent::test_a_wrong_checksum_installs_nothing_and_says_whose_mistake_it_may_be",
        "test_install_agent::test_the_same_version_with_other_content_is_refused_until_it_is_forgotten",
        "test_install_agent::test_a_package_with_unexpected_content_never_runs_its_scripts",
    ],
    "a redirect to plain HTTP": [
        "test_agent_index::test_a_redirect_to_what_is_not_https_is_refused",
        "test_edge_cases::test_an_archive_that_redirects_to_plain_http_is_refused",
    ],
    "an archive bomb": [
        "test_archives::test_an_archive_that_grows_too_much_is_refused",
        "test_archives::test_an_archive_with_too_many_members_is_refused",
        "test_archives::test_an_archive_with_too_many_bytes_is_refused",
    ],
    "an archive that is gone in the middle of an update": [
        "test_install_agent::test_an_archive_that_is_gone_says_so_and_the_old_version_stays",
        "test_installable_agents::test_a_failed_update_keeps_the_old_version_and_updates_the_others",
    ],
    "ids that mean something elsewhere, such as constructor and con": [
        "test_agent_index::test_a_list_of_the_future_is_read_as_far_as_it_is_understood",
        "test_install_agent::test_a_strange_version_and_a_reserved_id_get_safe_folders",
    ],
    # What has hurt users of other clients.
    "a version in the list that npm does not have yet": [
        "test_install_agent::test_a_version_that_npm_does_not_have_yet_is_replaced_by_the_newest_below_it",
    ],
    "npm's min-release-age": [
        "test_install_agent::test_a_version_that_the_user_s_npm_finds_too_new_is_replaced",
    ],
    "the network at each start": [
        "test_install_agent::test_a_package_of_npm_is_installed_and_its_program_starts_without_npx",
        "test_edge_cases::test_an_installed_package_starts_without_npm_and_without_a_network",
    ],
    "a first start of minutes without a sign": [
        "test_installable_agents::test_the_progress_of_a_download_is_one_line_that_vanishes",
        "test_install_agent::test_the_bytes_of_a_download_are_told",
    ],
    "npm's words thrown away": [
        "test_installable_agents::test_the_words_of_a_failed_installer_are_shown",
        "test_install_agent::test_the_words_of_npm_are_kept_when_it_fails",
    ],
    "programs of npm on Windows end with .cmd": [
        "test_edge_cases::test_a_program_of_npm_has_its_windows_name_on_windows",
    ],
    "a version added to a package that has one": [
        "test_entry::test_a_published_entry_means_its_command_on_each_system",
    ],
    "variables of the entry left out": [
        "test_entry::test_the_variables_of_an_entry_reach_the_choice",
        "test_environment::test_a_registry_cannot_read_the_keyring",
    ],
    "a wrong checksum in the list called a corrupt runtime": [
        "test_install_agent::test_a_wrong_checksum_installs_nothing_and_says_whose_mistake_it_may_be",
    ],
}


@pytest.mark.parametrize("case", EDGE_CASES)
def test_an_edge_case_has_tests(case):
    assert EDGE_CASES[case]
    assert not set(EDGE_CASES[case]) - named("registry")


def test_an_archive_that_redirects_to_plain_http_is_refused(registry, put_in):
    registry.add_archive("a", {"a": DEMO}, "./a")
    registry.answers["/download/v1.0.0/a.tar.gz"] = Answer(
        status=302, headers={"Location": "http://192.0.2.1/a.tar.gz"}
    )
    with pytest.raises(RegistryError, match="a redirect must go to https"):
        put_in("a")
    assert not installed_agents.versions_of("a")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_installed_package_starts_without_npm_and_without_a_network(registry, user, tmp_path):
    script = 'require("child_process").spawnSync(process.env.PYTHON, ["-m", "accord", "demo"], {stdio: "inherit"})\n'
    registry.add_npm_package("helper", "1.0.0", {"run.js": "#!/usr/bin/env node\n" + script}, "run.js")
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    user.said("agents", "install", "h", "--yes")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "node").symlink_to(str(shutil.which("node")))
    (folder / "env").symlink_to(str(shutil.which("env")))
    user.environment |= {
        "PATH": str(folder),
        "PYTHON": sys.executable,
        "ACCORD_REGISTRY": "http://127.0.0.1:1/registry.json",
    }
    registry.requests.clear()
    assert user.said("run", "Say hello", "-a", "h") == "hello\n"
    assert registry.requests == []


def test_a_program_of_npm_has_its_windows_name_on_windows():
    assert program_name("gemini", is_windows=True) == "gemini.cmd"
    assert program_name("gemini", is_windows=False) == "gemini"
