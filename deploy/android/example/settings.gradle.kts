pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositories {
        maven {
            url = rootDir.resolve(providers.gradleProperty("collect.maven").get()).toURI()
            content { includeGroup("org.collectord") }
        }
        google()
        mavenCentral()
    }
}

rootProject.name = "collect-example"
include(":app")
